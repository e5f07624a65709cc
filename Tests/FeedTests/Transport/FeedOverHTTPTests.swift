import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// The command follows a feed from a real web server, with a bad network in between.
@Suite(.serialized) struct FeedOverHTTPTests {
    private let scratch: Scratch
    private let server: WebServer

    init() throws {
        scratch = try Scratch()
        try scratch.directory("public")
        server = try WebServer(scratch.path("public"))
        try publish("1.0.0", 1)
    }

    private func run(_ line: String) throws -> Shell.Ended { try scratch.run(line) }
    private func must(_ line: String, status: Int32 = 0) throws { try scratch.must(line, status: status) }

    private func publish(_ version: String, _ sequence: Int) throws {
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        // The bytes are random, so that the bundle is large enough for an interruption.
        let sql = """
            CREATE TABLE food(id INTEGER PRIMARY KEY, release TEXT, noise BLOB);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
            INSERT INTO food SELECT i, '\(version)', randomblob(4000) FROM n;
            """
        _ = try maker.make(version, sequence: sequence, [.reference("food", sql)])
        if try Files.facts(scratch.path("a.key")) == nil { try must("moult keygen a --no-password -q") }
        try must("moult publish public rel/test-\(version).json -k a.key -q")
    }

    private func follow(_ url: String) throws {
        try must("moult init -q --product org.example.test --key a.pub --feed \(url)")
        // The first check would create this directory.
        try scratch.directory("store/.moult/feed")
        let settings = scratch.path("store/moult.json")
        let json = try JSON(parsing: try Files.read(settings, limit: 1 << 20) ?? [], source: settings)
        let feed = try #require(json["feed"]).setting("patience", to: 1)
        try Files.replace(settings, with: Array(json.setting("feed", to: feed).pretty.utf8))
    }

    /// As on Alpine, which has another C library.
    @Test(arguments: [
        ("#!/lib/ld-missing.so.1\n", "exists, but the program that loads it does not: /lib/ld-missing.so.1"),
        (
            "#!/bin/sh\necho 'x: error while loading shared libraries: libcurl.so.4: cannot open shared object file' >&2; exit 127\n",
            "libcurl.so.4: cannot open shared object file"
        ),
    ])
    func `a moult-fetch that cannot be loaded is named with the packages that it needs`(
        _ program: String, _ why: String
    ) throws {
        try follow(server.url("feed.json"))
        try Files.writeNew(Array(program.utf8), to: scratch.path("fetch"), mode: 0o755)
        for command in ["check", "apply"] {
            let ended = try run("MOULT_FETCH=$PWD/fetch moult \(command)")
            #expect(ended.status == 1, "\(ended)")
            #expect(ended.errors.contains("cannot send requests to web servers: "), "\(ended)")
            #expect(ended.errors.contains(why) && ended.errors.contains("apt install libcurl4 "), "\(ended)")
        }
    }

    private var installed: String {
        get throws {
            let path = scratch.path("store/food.db")
            if try Files.factsThroughLinks(path) == nil { return "nothing" }
            return try run("sqlite3 'file:store/food.db?immutable=1' 'SELECT DISTINCT release FROM food'").output
        }
    }

    private var bundleSize: Int { get throws { try Files.facts(scratch.path("public/test-1.0.0.tar.zst"))?.size ?? 0 } }

    @Test func `a store follows a feed over HTTP from the first release to the newest`() throws {
        let proxy = try FaultyProxy(before: server)
        try follow(proxy.url("feed.json"))
        let before = try Tree(scratch.path("store"))
        let plan = try run("moult plan")
        #expect(plan.status == 2)
        #expect(plan.output.contains("serial 1, \(ByteCount(try bundleSize)) to fetch\n"))
        #expect(plan.output.contains("found: \(proxy.url("test-1.0.0.tar.zst"))\n"), "\(plan)")
        #expect(try Tree(scratch.path("store")) == before)
        try must("moult apply -q")
        #expect(try installed == "1.0.0\n")
        // An unchanged feed takes one request, and the response is 304.
        let count = try proxy.requests().count
        #expect(try run("moult check -q").status == 0)
        try must("moult apply -q")
        #expect(try proxy.requests().dropFirst(count).map(\.status) == [304, 304])
        try publish("2.0.0", 2)
        #expect(try run("moult check -q").status == 2)
        try must("moult apply -q")
        #expect(try installed == "2.0.0\n")
    }

    /// A plan is not worth more than the bundle that it needs.
    @Test(arguments: [
        ("rm BUNDLE", "404"), ("truncate -s 5000 BUNDLE", "5000 bytes on the server"), ("chmod 0 BUNDLE", ""),
    ])
    func `plan refuses what apply would not find on the server`(_ change: String, _ why: String) throws {
        try follow(server.url("feed.json"))
        try must(change.replacing("BUNDLE", with: "public/test-1.0.0.tar.zst"))
        let (plan, apply) = (try run("moult plan"), try run("moult apply"))
        // Root's web server can read each file.
        if change.hasPrefix("chmod"), apply.status == 0 { return }
        #expect(plan.status == apply.status, "\(plan) \(apply)")
        #expect(plan.errors == apply.errors, "\(plan) \(apply)")
        #expect(plan.errors.contains(why), "\(plan)")
        #expect(plan.output.contains("apply with") == false)
    }

    @Test func `plan finds the bundle on a server that answers only GET`() throws {
        let proxy = try FaultyProxy(before: server, .onlyGet)
        try follow(proxy.url("feed.json"))
        let plan = try run("moult plan")
        #expect(plan.status == 2 && plan.output.contains("found: \(proxy.url("test-1.0.0.tar.zst"))\n"), "\(plan)")
        try must("rm public/test-1.0.0.tar.zst")
        let (missing, apply) = (try run("moult plan"), try run("moult apply"))
        #expect(missing.status == apply.status && missing.errors == apply.errors, "\(missing) \(apply)")
    }

    /// A server that has a key list for every number must not keep the command busy.
    @Test func `only a few key lists are requested from a server that has one for every number`() throws {
        let proxy = try FaultyProxy(before: server)
        for number in 1...60 {
            try Files.writeNew(Array("<html>".utf8), to: scratch.path("public/keys-\(number).json"))
        }
        try follow(proxy.url("feed.json"))
        try must("moult apply -q")
        #expect(try installed == "1.0.0\n")
        #expect(try proxy.requests().count { $0.path.hasPrefix("/keys-") && $0.path.hasSuffix(".json") } <= 16)
    }

    /// The bundle or patch has different bytes of the same size, as from a failing disk.
    @Test func `a damaged download is fetched again`() throws {
        let proxy = try FaultyProxy(before: server)
        try follow(proxy.url("feed.json"))
        try must("moult apply -q")
        let downloads = scratch.path("store/.moult/downloads")
        func spoil() throws {
            for name in try Files.list(downloads) where name.contains("-") {
                let size = try Files.facts("\(downloads)/\(name)")?.size ?? 0
                try Files.replace("\(downloads)/\(name)", with: Array(repeating: 7, count: size))
            }
        }
        #expect(try Files.list(downloads).contains { $0.hasSuffix("test-1.0.0.tar.zst") })
        try spoil()
        try must("chmod u+w store/.moult/current/ && rm -f store/.moult/current/food.db && moult apply -q")
        #expect(try installed == "1.0.0\n")
        try must("moult verify --deep")
        // The complete file is not downloaded again.
        let count = try proxy.requests().count
        try must("chmod u+w store/.moult/current/ && rm -f store/.moult/current/food.db && moult apply -q")
        #expect(try proxy.requests().dropFirst(count).contains { $0.path.hasSuffix(".zst") } == false)
    }

    @Test func `a saved plan fetches the approved release`() throws {
        try follow(server.url("feed.json"))
        #expect(try run("moult plan -o p").status == 2)
        try publish("2.0.0", 2)
        try must("moult apply -q --plan p")
        #expect(try installed == "1.0.0\n")
    }

    @Test func `without keys, each command must allow unsigned downloads`() throws {
        let url = server.url("feed.json")
        try must("moult init -q --product org.example.test --feed \(url)")
        let ended = try run("moult apply")
        #expect(ended.status == 3)
        #expect(
            ended.errors == """
                moult: error: \(url) cannot be verified: the store \(scratch.path("store")) trusts no key
                  Add the publisher's key to "keys" in \(scratch.path("store/moult.json")), or use --allow-unsigned this time.

                """)
        try must("moult apply -q --allow-unsigned")
        #expect(try run("moult check").status == 3)
    }

    @Test func `a command exits with its own status if a feed is unreachable`() throws {
        try follow("http://127.0.0.1:\(try Port.free())/feed.json")
        #expect(try run("moult check -q").status == 75)
        #expect(try run("moult apply -q").status == 75)
        #expect(try installed == "nothing")
    }

    /// Every fault in every file: the result is the correct release, or an error that leaves the store unchanged.
    @Test(
        .tags(.thorough),
        arguments: ["feed.json", "feed.json.minisig", "test-1.0.0.json", "test-1.0.0.tar.zst"],
        [FaultyProxy.Fault.cut, .stall, .truncate, .corrupt, .long, .endless, .refuse])
    func `a faulty server leaves the old release or the new one`(_ file: String, _ fault: FaultyProxy.Fault) throws {
        let proxy = try FaultyProxy(before: server, fault, times: 1, only: file)
        try follow(proxy.url("feed.json"))
        let before = try Tree(scratch.path("store"), times: false, skipping: [".moult/downloads", ".moult/feed"])
        let ended = try run("moult apply -q")
        if ended.status == 0 {
            #expect(try installed == "1.0.0\n")
        } else {
            #expect([1, 3, 75].contains(ended.status) && ended.errors.hasPrefix("moult: error: "))
            let after = try Tree(scratch.path("store"), times: false, skipping: [".moult/downloads", ".moult/feed"])
            #expect(after == before)
        }
        // After the fault, the update succeeds.
        try must("moult apply -q")
        #expect(try installed == "1.0.0\n")
    }

    /// The command is killed at 90 % of the bundle, and the next command downloads the last 10 %.
    @Test func `a download is resumed after a kill`() throws {
        let proxy = try FaultyProxy(before: server, .stall, at: 0.9, only: ".tar.zst")
        try follow(proxy.url("feed.json"))
        let program = try Background([try BuiltMoult.path(), "apply", "-q", "--store", scratch.path("store")])
        let size = try bundleSize
        let kept = size * 9 / 10
        try program.wait {
            try Files.list(scratch.path("store/.moult/downloads")).contains { name in
                try name.hasSuffix(".part") && Files.facts(scratch.path("store/.moult/downloads/\(name)"))?.size == kept
            }
        }
        program.signal(SIGKILL)
        // The lock was released with the killed process.
        try must("moult apply -q --wait 10")
        #expect(try installed == "1.0.0\n")
        let last = try #require(proxy.requests().last)
        #expect(last.range == "bytes=\(kept)-" && last.bytes == size - kept)
    }

    /// The tag of a file is kept in the store. This server sends one that would exceed the limits of these records.
    @Test func `a server with a very long ETag does not make the store unusable`() throws {
        let program = """
            import http.server, os, sys
            os.chdir(sys.argv[2])
            class Handler(http.server.SimpleHTTPRequestHandler):
                def log_message(self, *words): pass
                def end_headers(self):
                    self.send_header("ETag", '"' + '\\\\"' * 16000 + '"')
                    super().end_headers()
            http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
            """
        let port = try Port.free()
        let server = try Background(["python3", "-c", program, "\(port)", scratch.path("public")])
        defer { server.signal(SIGKILL) }
        try server.wait { Port.answers(port) }
        try follow("http://127.0.0.1:\(port)/feed.json")
        try must("moult apply -q && moult check -q && moult status && moult verify -q")
        #expect(try installed == "1.0.0\n")
    }

    @Test func `the next mirror is used if the first server is unreachable`() throws {
        try follow("http://127.0.0.1:\(try Port.free())/feed.json")
        try must(
            #"sed -i 's|"patience"|"mirrors": ["\#(server.url("feed.json"))"], "patience"|' store/moult.json && moult apply -q"#
        )
        #expect(try installed == "1.0.0\n")
    }

    /// The first mirror attacks in each way that signatures and digests detect; the second mirror is honest.
    @Test func `a mirror with wrong files is skipped`() throws {
        let lies = [
            "echo '{}' > lies/feed.json", "cp old/feed.json* lies", "truncate -s 20M lies/feed.json",
            "truncate -s 20M lies/keys-1.json", "cp lies/test-1.0.0.json lies/test-2.0.0.json",
            "rm lies/test-2.0.0.json", "truncate -s 4M lies/test-2.0.0.tar.zst",
            "head -c $(stat -c %s rel/test-2.0.0.tar.zst) /dev/zero > lies/test-2.0.0.tar.zst",
        ]
        try must("cp -r public old")
        try publish("2.0.0", 2)
        try scratch.directory("lies")
        let liar = try WebServer(scratch.path("lies"))
        for lie in lies {
            try must("mkdir -p store; chmod -R u+w store; rm -rf lies/* store; cp -r public/* lies; \(lie)")
            try follow(liar.url("feed.json"))
            try must(
                #"sed -i 's|"patience"|"mirrors": ["\#(server.url("feed.json"))"], "patience"|' store/moult.json"#)
            // The store sees the newest feed first, so that it can recognize an old one.
            try must("moult check -q --feed \(server.url("feed.json"))", status: 2)
            try must("moult apply -q")
            #expect(try installed == "2.0.0\n", "\(lie)")
        }
    }
}
