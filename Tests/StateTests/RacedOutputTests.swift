import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// The owner of an output directory exchanges it with a link to a directory of root, again and again while a command of root runs.
/// Each system call of the command with a path is delayed, so that an exchange happens between any two of them.
@Suite(.tags(.thorough), .serialized, .enabled(if: geteuid() == 0, "only root may become another user"))
struct RacedOutputTests {
    private let scratch: Scratch
    private var victim: String { scratch.path("victim") }
    private static let other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    init() throws {
        scratch = try Scratch()
        try scratch.must(
            """
            chmod 755 .; unset MOULT_STORE; mkdir victim own home; cd own
            echo 'CREATE TABLE t(x); INSERT INTO t VALUES (1);' > make.sql; echo 'CREATE TABLE t(x);' > other.sql
            printf '%s' '{"manifest":1,"product":"org.example.x","version":"1.0.0","databases":{"food":{"kind":"reference","path":"food.db","build":{"script":"make.sql"}}}}' > draft.json
            moult keygen -q --no-password key; moult build -q make.sql -o food.db; moult build -q other.sql -o other.db
            moult pack -q draft.json -o rel; moult init -q empty --product org.example.x
            moult publish -q feed rel/x-1.0.0.json --key key.key
            moult init -q store --product org.example.x --key key.pub --feed "$PWD/feed/feed.json"; moult apply -q --store store
            cp other.db ../victim/new.db; cp other.db ../victim/app.db
            """)
    }

    /// The commands that write to `out`, a directory of another user.
    private static let commands = [
        "build own/make.sql -o home/out/new.db", "pack own/draft.json -o home/out",
        "publish home/out own/rel/x-1.0.0.json --key own/key.key",
        "delta own/food.db own/other.db -o home/out/new.patch",
        "diff own/food.db own/other.db --html home/out/new.html",
        "plan own/rel/x-1.0.0.json --store own/empty --output home/out/new.plan",
        "export 1.0.0 home/out --store own/store", "keygen --no-password home/out/new",
        "init home/out/store --product org.example.y", "replace home/out/app.db own/food.db",
    ]

    /// Exchanges two names, until its input ends.
    private static let exchanging = """
        import ctypes, random, select, sys, time
        one, other = (name.encode() for name in sys.argv[1:3])
        shortest, longest = (float(number) for number in sys.argv[3:5])
        libc = ctypes.CDLL(None)
        done = 0
        while not select.select([sys.stdin], [], [], shortest + random.random() ** 3 * (longest - shortest))[0]:
            if libc.syscall(316, -100, one, -100, other, 2) == 0:
                done += 1
                if done == 1: print("ready")
        """

    private func exchange(_ one: String, _ other: String, every seconds: ClosedRange<Double>) throws -> Program {
        let program = try Program(
            Self.other + ["python3", "-u", "-c", Self.exchanging, scratch.path(one), scratch.path(other)]
                + ["\(seconds.lowerBound)", "\(seconds.upperBound)"])
        try #require(program.line() == "ready")
        return program
    }

    private func run(_ command: String, delaying: String = "%file:delay_exit=300") throws -> Shell.Ended {
        let calls = delaying.prefix { $0 != ":" }
        return try scratch.run(
            "unset MOULT_STORE; strace -f -qq -o /dev/null -e trace=\(calls) -e inject=\(delaying) moult \(command)")
    }

    @Test(arguments: commands)
    func `no output is redirected while another user exchanges the directory for a link`(_ command: String) throws {
        try scratch.must(
            "mkdir home/out; cp own/other.db home/out/app.db; ln -s ../victim home/link; chown -hR 65534 home")
        let before = try Tree(victim)
        let attacker = try exchange("home/out", "home/link", every: 0...0.02)
        let end = ContinuousClock.now + .seconds(25)
        var ended: [Shell.Ended] = []
        while ended.count < 30, ContinuousClock.now < end {
            ended.append(try run(command))
            try #require(try Tree(victim) == before, "run \(ended.count): \(ended.last?.errors ?? "")")
        }
        attacker.closeInput()
        #expect(attacker.wait() == 0)
        // The command has found the link, so the exchange was fast enough.
        #expect(ended.contains { $0.status == 3 && $0.errors.contains("belongs to user") }, "\(ended)")
    }

    /// In a sticky directory, the owner of a file can exchange it for a link.
    @Test(arguments: ["replace open/app.db own/food.db", "replace --undo open/app.db"])
    func `the owner of a replaced file puts no link into the store of root`(_ command: String) throws {
        try scratch.must(
            """
            mkdir open; cp own/other.db open/app.db; ln -s ../victim/app.db open/link; chown -h 65534 open/app.db open/link
            chmod 1777 open; cp own/food.db victim/app.db
            """)
        if command.contains("--undo") {
            try scratch.must("unset MOULT_STORE; moult replace -q open/app.db own/food.db")
        }
        let before = try Tree(victim)
        let attacker = try exchange("open/app.db", "open/link", every: 0.2...0.5)
        let end = ContinuousClock.now + .seconds(25)
        var count = 0
        while count < 30, ContinuousClock.now < end {
            count += 1
            // The link must be absent at first, and there when the file is opened.
            let ended = try run(command, delaying: "mkdirat:delay_enter=400000")
            let links = try scratch.must(
                "find open/.app.db.moult -type l -user 65534 2>/dev/null || test ! -e open/.app.db.moult"
            )
            try #require(links == "", "run \(count): \(ended)")
            try #require(try Tree(victim) == before, "run \(count): \(ended)")
        }
        attacker.closeInput()
        #expect(attacker.wait() == 0)
    }
}
