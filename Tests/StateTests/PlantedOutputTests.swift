import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// In place of a directory on the way to an output, another user plants a link to a directory of root. No command writes there.
@Suite(.tags(.thorough), .serialized, .enabled(if: geteuid() == 0, "only root may become another user"))
struct PlantedOutputTests {
    private let scratch: Scratch
    private var victim: String { scratch.path("victim") }

    init() throws {
        scratch = try Scratch()
        try Shell.must(["chmod", "755", scratch.path])
        try scratch.must(
            """
            mkdir victim own home open; chmod 1777 open; echo VICTIM > victim/file; cd own
            echo 'CREATE TABLE t(x); INSERT INTO t VALUES (1);' > make.sql; echo 'CREATE TABLE t(x);' > other.sql
            printf '%s' '{"manifest":1,"product":"org.example.x","version":"1.0.0","databases":{"food":{"kind":"reference","path":"food.db","build":{"script":"make.sql"}}}}' > draft.json
            moult keygen -q --no-password key; moult keygen -q --no-password --root root
            moult build -q make.sql -o food.db; moult build -q other.sql -o other.db; moult pack -q draft.json -o rel
            moult publish -q feed rel/x-1.0.0.json --key key.key
            moult init -q store --product org.example.x --key key.pub --feed "$PWD/feed/feed.json"; moult apply -q --store store
            moult init -q empty --product org.example.x
            chown -R 65534 ../home
            """)
    }

    /// The commands that write to a directory `$out`, which exists and contains `file`.
    private static let commands = [
        "moult build own/make.sql -o $out/new.db", "moult keygen --no-password $out/new",
        "moult pack own/draft.json -o $out", "moult pack own/draft.json -o $out/new",
        "moult pack own/food.db --product org.example.y --version 1.0.0 -o own/out --write-draft $out/draft.json",
        "moult trust $out --product org.example.y --root own/root.pub --release own/key.pub -k own/root.key",
        "moult publish $out own/rel/x-1.0.0.json --key own/key.key",
        "moult publish $out/new own/rel/x-1.0.0.json --key own/key.key",
        "moult delta own/food.db own/other.db -o $out/new.patch", "moult sign $out/file --key own/key.key",
        "moult history --store own/store --html $out/new.html",
        "moult diff own/food.db own/other.db --html $out/new.html",
        "moult plan own/rel/x-1.0.0.json --store own/empty --output $out/new.plan",
        "moult export 1.0.0 $out --store own/store", "moult export 1.0.0 $out/new --store own/store",
        "moult completions man $out", "moult init $out/store --product org.example.y",
        "moult cache $out/new.db --schema own/make.sql",
    ]

    private static let as65534 = "setpriv --reuid=65534 --regid=65534 --clear-groups"

    private func plant(_ target: String, at link: String) throws {
        try scratch.must("\(Self.as65534) ln -s \(target) \(link)")
    }

    private func run(_ command: String, to out: String) throws -> Shell.Ended {
        try scratch.run(command, environment: ["out": out])
    }

    @Test(arguments: ["home", "open"]) func `root writes no output through another user's link`(_ place: String) throws
    {
        try plant("../victim", at: "\(place)/link")
        let (before, link) = (try Tree(victim), scratch.path("\(place)/link"))
        for out in ["\(place)/link", link] {
            for command in Self.commands {
                let ended = try run(command, to: out)
                #expect(ended.status == 3, "\(command): \(ended)")
                // `init` and `cache` name the directory of the other user, which contains the link.
                #expect(ended.errors.contains(place), "\(command): \(ended)")
                #expect(try Tree(victim) == before, "\(command): \(ended)")
            }
        }
    }

    @Test func `the error for another user's link contains a path that works`() throws {
        try plant("../victim", at: "home/link")
        let ended = try run("moult build own/make.sql -o $out/new.db", to: "home/link")
        #expect(
            ended.errors == """
                moult: error: cannot write to home/link: the symbolic link home/link belongs to user \
                \(Files.userName(65534)), and its target belongs to user root
                  If you trust that user, use the path victim instead of the link.

                """)
        try scratch.must("moult build -q own/make.sql -o victim/new.db")
    }

    @Test func `root writes no output through a chain of another user's links`() throws {
        let before = try Tree(victim)
        // The first link leads to a file of its owner, and the second one does not.
        try scratch.must("mkdir -m 777 home/real; chown 65534 home/real")
        try plant("real/second", at: "home/first")
        try plant("../../victim", at: "home/real/second")
        try plant("real/../../victim", at: "home/parents")
        for out in ["home/first", "home/real/second", "home/parents", "home/first/../victim"] {
            let ended = try run("moult build own/make.sql -o $out/new.db", to: out)
            #expect(ended.status == 3, "\(out): \(ended)")
            #expect(try Tree(victim) == before, "\(out): \(ended)")
        }
    }

    /// Links that the operator or root made, and links of another user to that user's own directory.
    @Test(arguments: ["own/link", "open/link", "home/roots", "home/link"])
    func `a link of this user, of root, or to a directory of its owner works`(_ link: String) throws {
        try scratch.must("mkdir own/target home/target; echo x > own/target/file; echo x > home/target/file")
        try scratch.must("chown 65534 home/target; ln -s target own/link; ln -s ../own/target open/link")
        try scratch.must("ln -s ../own/target home/roots")
        try plant("target", at: "home/link")
        for command in Self.commands
        // Root uses no store and no cache below a directory of another user.
        where link.hasPrefix("own") || !command.contains("init") && !command.contains("cache") {
            // Some commands would be refused because of the files of earlier ones.
            try scratch.must("find -L \(link)/ -mindepth 1 -delete; echo x > \(link)/file")
            let ended = try run(command, to: link)
            #expect(ended.status == 0 || ended.status == 2, "\(command): \(ended)")
            #expect(try Files.facts(scratch.path(link))?.kind == .link)
        }
    }

    @Test func `an ordinary user writes no output through another user's link`() throws {
        try scratch.must("mkdir -m 1777 shared; chown -R 65534 own victim; ln -s ../victim shared/link")
        try scratch.must("chown -h 65533 shared/link")
        let before = try Tree(victim)
        for command in Self.commands where !command.contains("init") {
            let ended = try run("\(Self.as65534) $(command -v moult) \(command.dropFirst(6))", to: "shared/link")
            #expect(ended.status == 3 && ended.errors.contains("shared/link"), "\(command): \(ended)")
            #expect(try Tree(victim) == before, "\(command): \(ended)")
        }
        // With the user's own link, the same commands work.
        try scratch.must("\(Self.as65534) ln -s ../victim shared/own")
        for command in Self.commands where !command.contains("init") {
            try scratch.must("find -L shared/own/ -mindepth 1 -delete; echo x > victim/file; chown 65534 victim/file")
            let ended = try run("\(Self.as65534) $(command -v moult) \(command.dropFirst(6))", to: "shared/own")
            #expect(ended.status == 0 || ended.status == 2, "\(command): \(ended)")
        }
    }

    @Test func `root exports no quarantine through another user's link`() throws {
        let releases = try CopiedStore.Releases()
        let store = try CopiedStore.make(.quarantine, at: scratch.path("kept"), releases)
        try plant("../victim", at: "home/link")
        let before = try Tree(victim)
        let ended = try store.moult(["quarantine", "--export", scratch.path("home/link/new.db"), "diary"])
        #expect(ended.status == 3 && ended.errors.contains("home/link belongs to user"), "\(ended)")
        #expect(try Tree(victim) == before)
        try store.must("quarantine", "--export", scratch.path("own/diary.db"), "diary")
    }

    @Test func `no output is redirected if another user exchanges the directory for a link`() throws {
        try scratch.must("mkdir home/out; chown 65534 home/out")
        let before = try Tree(victim)
        let output = try PinnedDirectory.output(scratch.path("home/out"))
        try scratch.must("\(Self.as65534) sh -c 'mv home/out home/moved && ln -s ../victim home/out'")
        try Files.replace("\(output.path)/new", with: Array("new".utf8))
        #expect(try Tree(victim) == before)
        #expect(try Files.list(scratch.path("home/moved")) == ["new"])
    }
}
