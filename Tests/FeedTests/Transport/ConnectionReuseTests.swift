import MoultBasics
import MoultFiles
import MoultLibc
import MoultTransport
import TestSupport
import Testing

/// A command sends all its requests over one connection, and asks for nothing twice.
@Suite struct ConnectionReuseTests {
    private let scratch: Scratch
    private let server: WebServer

    init() throws {
        scratch = try Scratch()
        try scratch.directory("public")
        server = try WebServer(scratch.path("public"))
        try scratch.must("moult keygen a --no-password -q")
        try publish("1.0.0")
    }

    private func publish(_ version: String) throws {
        try scratch.must(
            """
            rm -rf draft; mkdir -p draft rel
            sqlite3 draft/food.db "CREATE TABLE food(release TEXT); INSERT INTO food VALUES('\(version)')"
            echo '{ "manifest": 1, "product": "org.example.test", "version": "\(version)",
                "databases": { "food": { "kind": "reference" } } }' > draft/draft.json
            moult pack draft/draft.json -o rel -q
            moult publish public rel/test-\(version).json -k a.key -q
            """)
    }

    /// Runs a command, which sends these requests over one connection.
    private func expect(_ line: String, _ paths: [String]) throws {
        let before = try server.requests().count
        try scratch.must(line)
        let sent = try server.requests().dropFirst(before)
        #expect(sent.map(\.path) == paths, "\(line)")
        #expect(Set(sent.map(\.connection)).count == 1, "\(line)")
    }

    private static func files(of version: String) -> [String] {
        [
            "/feed.json", "/keys-1.json", "/feed.json.minisig", "/test-\(version).json",
            "/test-\(version).tar.zst",
        ]
    }

    @Test func `a first install takes five requests, an update as many, and a poll one`() throws {
        try scratch.must("moult init --product org.example.test --key a.pub --feed \(server.url("feed.json")) -q")
        try expect("moult apply -q", Self.files(of: "1.0.0"))
        let sizes = try Self.files(of: "1.0.0").compactMap { try Files.facts(scratch.path("public\($0)"))?.size }
        let status = try JSON(parsing: Array(scratch.must("moult status --json").utf8), source: "status")
        #expect(status["attempt"]?["bytes"]?.integer == Int64(sizes.reduce(0, +)))
        try expect("moult check -q", ["/feed.json"])
        try expect("moult apply -q", ["/feed.json"])
        try publish("2.0.0")
        try expect("moult apply -q", Self.files(of: "2.0.0"))
    }

    @Test func `a feed that is named on the command line is asked for once`() throws {
        let url = server.url("feed.json")
        try expect("moult apply -q --create --key a.pub --store new \(url)", Self.files(of: "1.0.0"))
        try publish("2.0.0")
        try expect("moult plan -q --store new \(url) || [ $? = 2 ]", Self.files(of: "2.0.0"))
        try expect(
            "moult apply -q --store new \(server.url("test-2.0.0.json"))",
            ["/test-2.0.0.json", "/keys-1.json", "/test-2.0.0.json.minisig", "/test-2.0.0.tar.zst"])
    }

    /// A process that waits for a lock may have read the feed before another process installs a newer one.
    @Test func `an older copy of the feed is not used`() throws {
        let url = server.url("feed.json")
        try scratch.must("moult apply -q --create --key a.pub --store new \(url)")
        var lock = try FileLock.take(scratch.path("new/.moult/downloads/lock"), .exclusive)
        #expect(lock != nil)
        let before = try server.requests().count
        let waiting = try Background(
            [try BuiltMoult.path(), "apply", "-q", "--wait", "60", "--store", scratch.path("new"), url])
        try waiting.wait { try server.requests().count > before }
        try publish("2.0.0")
        try scratch.must(
            "moult apply -q --create --key a.pub --store other \(url); cp other/.moult/feed/* new/.moult/feed")
        lock = nil
        _ = try waiting.end()
        #expect(try scratch.must("moult status --store new --json").contains("2.0.0"))
    }

    @Test func `status names the process that downloads the newer release, and does not advise to install it`() throws {
        try scratch.must("moult apply -q --create --key a.pub --store new \(server.url("feed.json"))")
        try publish("2.0.0")
        try scratch.must("moult check -q --store new || [ $? = 2 ]")
        #expect(try scratch.must("moult status --store new").contains("Install it with: moult apply"))
        let lock = try #require(try FileLock.take(scratch.path("new/.moult/downloads/lock"), .exclusive))
        let status = try scratch.must("moult status --store new")
        withExtendedLifetime(lock) {}
        #expect(status.contains("it is being downloaded by") && !status.contains("Install it with"), "\(status)")
    }

    /// The publisher reads the public feed before the upload, and the new files after it.
    @Test func `publish reads back what is public over one connection`() throws {
        try scratch.must("cp -r public mine")
        try scratch.must(
            "sed 's/1.0.0/2.0.0/' draft/draft.json > draft/next.json; moult pack draft/next.json -o rel -q")
        let upload = #"cp "$MOULT_FILE" \#(scratch.path("public"))/"$MOULT_NAME""#
        let before = try server.requests().count
        try scratch.must(
            "moult publish -q mine rel/test-2.0.0.json -k a.key --upload-with '\(upload)' --fetch-with \(server.url("feed.json"))"
        )
        let sent = try server.requests().dropFirst(before)
        #expect(sent.count > 2 && Set(sent.map(\.connection)).count == 1, "\(sent)")
    }

    // MARK: the helper

    private var transport: Transport {
        var policy = Transport.RetryPolicy()
        (policy.attempts, policy.pause) = (2, 10)
        return Transport(policy)
    }

    private func read(_ name: String, by transport: Transport, limit: Int = 1 << 16) throws -> Bool {
        if case .bytes = try transport.read(Location(server.url(name)), limit: limit) { true } else { false }
    }

    /// The process IDs of the helpers that this process has started.
    private func helpers() throws -> [Int32] {
        try Shell.run(["pgrep", "-P", "\(getpid())", "-x", "moult-fetch"]).output.split(separator: "\n")
            .compactMap { Int32($0) }
    }

    @Test func `a helper serves the requests that follow, also after one that found nothing`() throws {
        let (transport, before) = (transport, Set(try helpers()))
        #expect(try read("feed.json", by: transport))
        let first = Set(try helpers()).subtracting(before)
        #expect(first.count == 1)
        #expect(try !read("missing", by: transport))
        #expect(throws: MoultError.self) { try read("busy", by: transport) }
        #expect(try read("feed.json", by: transport.share(of: 2)))
        #expect(try first.isSubset(of: helpers()))
        #expect(Set(try server.requests().suffix(4).map(\.connection)).count == 1)
    }

    @Test func `a helper that was killed, or stopped in the middle of a response, is replaced`() throws {
        let (transport, before) = (transport, Set(try helpers()))
        #expect(try read("feed.json", by: transport))
        for pid in Set(try helpers()).subtracting(before) { #expect(kill(pid, SIGKILL) == 0) }
        #expect(try read("feed.json", by: transport))
        let second = Set(try helpers()).subtracting(before)
        #expect(throws: MoultError.self) { try read("feed.json", by: transport, limit: 10) }
        #expect(try read("feed.json", by: transport))
        #expect(Set(try helpers()).isDisjoint(with: second))
    }

    @Test func `a helper ends with the transport`() throws {
        let before = Set(try helpers())
        do {
            let transport = transport
            #expect(try read("feed.json", by: transport))
            #expect(Set(try helpers()).subtracting(before).count == 1)
        }
        #expect(Set(try helpers()) == before)
    }
}
