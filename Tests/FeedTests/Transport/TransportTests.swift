import MoultBasics
import MoultFiles
import MoultLibc
import MoultTransport
import MoultTrust
import Synchronization
import TestSupport
import Testing

/// Transfers from a real web server, with a proxy that behaves like a bad network.
@Suite struct TransportTests {
    private let scratch: Scratch
    private let server: WebServer
    private let size = 1_000_000

    init() throws {
        scratch = try Scratch()
        let directory = try scratch.directory("public")
        try Shell.must([
            "sh", "-ec", "head -c 1000000 /dev/urandom > \(directory)/file; printf hello > \(directory)/small",
        ])
        server = try WebServer(directory)
    }

    private func transport(patience: Int = 2, attempts: Int = 3) -> Transport {
        var retryPolicy = Transport.RetryPolicy()
        (retryPolicy.patience, retryPolicy.attempts, retryPolicy.pause) = (patience, attempts, 10)
        return Transport(retryPolicy)
    }

    private func download(_ url: String, _ transport: Transport? = nil) throws {
        try (transport ?? self.transport()).download(
            Location(url), to: scratch.path("part"), size: size, progress: { _ in })
    }

    private var isWhole: Bool {
        get throws {
            try SHA256.digest(ofFileAt: scratch.path("part")) == SHA256.digest(ofFileAt: scratch.path("public/file"))
        }
    }

    // MARK: small files

    @Test func `a small file is read into memory`() throws {
        #expect(try transport().read(Location(server.url("small")), limit: 5) != .nothing)
        guard case .bytes(let bytes, let tag) = try transport().read(Location(server.url("small")), limit: 5) else {
            Issue.record("no bytes")
            return
        }
        #expect(bytes == Array("hello".utf8))
        #expect(try transport().read(Location(server.url("small")), limit: 5, unless: tag) == .unchanged)
        #expect(try transport().read(Location(server.url("gone")), limit: 5) == .nothing)
        #expect(try transport().read(Location(scratch.path("public/small")), limit: 5) == .bytes(bytes, tag: nil))
        let path = scratch.path("public/small").replacing("small", with: "s%6Dall")
        #expect(try transport().read(Location("file://\(path)"), limit: 5) == .bytes(bytes, tag: nil))
    }

    @Test func `a transfer stops at the size limit`() throws {
        let error = try #require(throws: MoultError.self) {
            try transport().read(Location(server.url("file")), limit: 999_999)
        }
        #expect(error.outcome != .busy)
        let proxy = try FaultyProxy(before: server, .endless)
        #expect(throws: MoultError.self) { try transport().read(Location(proxy.url("small")), limit: 100) }
    }

    @Test(arguments: [
        ("busy", MoultError.Outcome.busy, "the server replied with status 503 (not available)"),
        ("private/x", .failed, "the server replied with status 401 (not authorized)"),
    ])
    func `HTTP errors are reported`(_ path: String, _ outcome: MoultError.Outcome, _ why: String) throws {
        let proxy = try FaultyProxy(before: server)
        let error = try #require(throws: MoultError.self) {
            try transport().read(Location(proxy.url(path)), limit: 100)
        }
        #expect(error.outcome == outcome && error.why == why)
        // Only errors that may be temporary are retried.
        #expect(try proxy.requests().count == (outcome == .busy ? 3 : 1))
    }

    /// A server may send this status only in response to a conditional request.
    @Test func `"not modified" is an error unless moult has asked`() throws {
        let same = try ScriptedServer(scratch.path("public"), .notModified)
        let error = try #require(throws: MoultError.self) {
            try transport().read(Location(same.url("small")), limit: 5)
        }
        #expect(
            error.outcome == .refused
                && error.why
                    == "the server replied with status 304 (not modified), although moult asked for the file whatever its version"
        )
        #expect(throws: MoultError.self) { try download(same.url("file")) }
        #expect(try transport().read(Location(same.url("small")), limit: 5, unless: "\"x\"") == .unchanged)
    }

    @Test func `redirects to another scheme are not followed`() throws {
        guard case .bytes(let bytes, _) = try transport().read(Location(server.url("moved")), limit: size) else {
            Issue.record("no bytes")
            return
        }
        #expect(bytes.count == size)
        for path in ["astray", "secure"] {
            let error = try #require(throws: MoultError.self) {
                try transport().read(Location(server.url(path)), limit: size)
            }
            #expect(error.outcome == .refused && error.what == "\(server.url(path)) redirects to another scheme")
        }
    }

    @Test(arguments: ["ftp://example.org/x", "https://me:secret@example.org/x", "https:///x", "file://host/x"])
    func `invalid locations are refused`(_ text: String) throws {
        let error = try #require(throws: MoultError.self) { try Location(text) }
        #expect(error.outcome == .refused)
        #expect(!"\(error)".contains("secret"))
    }

    @Test func `the address of a file next to a feed is derived from that of the feed`() throws {
        for (place, beside) in [
            ("https://a.org/x/feed.json", "https://a.org/x/f"),
            ("https://a.org/feed.json?t=1#x", "https://a.org/f?t=1"),
            ("https://a.org", "https://a.org/f"), ("/srv/feed.json", "/srv/f"),
        ] {
            #expect(try Location(place).beside("f").address.withSecrets == beside)
        }
    }

    /// An unreachable server is a separate error, which may be temporary.
    @Test func `an unreachable server is reported`() throws {
        let error = try #require(throws: MoultError.self) {
            try transport().read(Location("http://127.0.0.1:\(Port.free())/x"), limit: 10)
        }
        #expect(error.outcome == .busy)
    }

    @Test func `passwords are read from netrc and are not shown`() throws {
        try Shell.must(["mkdir", scratch.path("public/private")])
        try Shell.must(["cp", scratch.path("public/small"), scratch.path("public/private/small")])
        try Files.writeNew(
            Array("machine 127.0.0.1 login moult password feather\n".utf8), to: scratch.path(".netrc"), mode: 0o600)
        let authority = try Authority(in: scratch.path("ca"))
        let server = try WebServer(
            scratch.path("public"), certificate: authority.certify("IP:127.0.0.1", as: "server"))
        let fetch = Files.directory(of: try BuiltMoult.path()) + "/moult-fetch"
        let request =
            #"{"url":"\#(server.url("private/small"))","offset":0,"patience":5,"minimumRate":1,"deadline":20,"bandwidth":0}"#
        let ended = try Shell.run(
            [fetch], environment: ["HOME": scratch.path, "CURL_CA_BUNDLE": authority.certificate], input: request)
        #expect(ended.status == 0 && ended.output.hasSuffix("\n{\"bytes\":5}\nhello{\"end\":true}\n"), "\(ended)")
        #expect(!ended.output.contains("feather") && !ended.errors.contains("feather"))
    }

    // MARK: large files

    @Test func `a large file is downloaded`() throws {
        try download(server.url("file"))
        #expect(try isWhole)
    }

    /// If a connection is cut at 90 %, only the last 10 % are transferred afterwards.
    @Test func `an interrupted transfer is resumed where it stopped`() throws {
        let proxy = try FaultyProxy(before: server, .cut, at: 0.9)
        try download(proxy.url("file"))
        #expect(try isWhole)
        let requests = try proxy.requests()
        #expect(requests.map(\.range) == ["", "bytes=900000-"])
        #expect(requests.map(\.bytes) == [900_000, 100_000])
    }

    /// A later attempt also resumes the transfer, because the partial file is kept.
    @Test func `a transfer is resumed from a partial file`() throws {
        let proxy = try FaultyProxy(before: server, .cut, at: 0.9)
        #expect(throws: MoultError.self) { try download(proxy.url("file"), transport(attempts: 1)) }
        #expect(try Files.facts(scratch.path("part"))?.size == 900_000)
        try download(proxy.url("file"))
        #expect(try isWhole)
        #expect(try proxy.requests().map(\.range) == ["", "bytes=900000-"])
    }

    /// If the file has changed in between, the whole file is downloaded again.
    @Test func `a partial file of another version is not resumed`() throws {
        let proxy = try FaultyProxy(before: server, .cut, at: 0.5)
        #expect(throws: MoultError.self) { try download(proxy.url("file"), transport(attempts: 1)) }
        try Shell.must([
            "sh", "-ec",
            "head -c 1000000 /dev/urandom > \(scratch.path("public/file")); touch -d @1 \(scratch.path("public/file"))",
        ])
        try download(proxy.url("file"))
        #expect(try isWhole)
        #expect(try proxy.requests().map(\.status) == [200, 200])
    }

    @Test func `a transfer completes despite many interruptions`() throws {
        let proxy = try FaultyProxy(before: server, .cut, at: 0.3, times: 8)
        try download(proxy.url("file"), transport(attempts: 2))
        #expect(try isWhole)
        #expect(try proxy.requests().reduce(0) { $0 + $1.bytes } == size)
    }

    @Test func `a stalled transfer is aborted and resumed`() throws {
        let proxy = try FaultyProxy(before: server, .stall, at: 0.7)
        try download(proxy.url("file"), transport(patience: 1))
        #expect(try isWhole)
        #expect(try proxy.requests().last?.range == "bytes=700000-")
    }

    @Test func `a transfer completes after a connection that the server closes at once`() throws {
        let proxy = try FaultyProxy(before: server, .refuse)
        try download(proxy.url("file"))
        #expect(try isWhole)
    }

    @Test(arguments: [(FaultyProxy.Fault.truncate, 500_000), (.long, 1_001_000)])
    func `a server that reports a different size than the manifest is not asked again`(
        _ fault: FaultyProxy.Fault, _ size: Int
    ) throws {
        let proxy = try FaultyProxy(before: server, fault)
        let error = try #require(throws: MoultError.self) { try download(proxy.url("file")) }
        #expect(
            error.why == "its size is \(size) bytes on the server, and 1000000 bytes in the manifest", "\(error)")
        #expect(try proxy.requests().count == 1)
    }

    @Test func `a download that exceeds the size in the manifest is stopped`() throws {
        let proxy = try FaultyProxy(before: server, .endless, times: 9)
        let error = try #require(throws: MoultError.self) { try download(proxy.url("file")) }
        #expect(error.why == "the server sent more than the 1000000 bytes in the manifest")
        #expect((try Files.facts(scratch.path("part"))?.size ?? 0) <= size)
    }

    @Test func `content from the wrong offset is not appended`() throws {
        let proxy = try FaultyProxy(before: server, .misplace, times: 9, only: "file")
        try Shell.must(["sh", "-ec", "head -c 5000 \(scratch.path("public/file")) > \(scratch.path("part"))"])
        let error = try #require(throws: MoultError.self) { try download(proxy.url("file")) }
        #expect(error.what.hasSuffix("at the wrong offset"))
        #expect(try Files.facts(scratch.path("part"))?.size == 5000)
    }

    @Test func `a transfer stops on request`() throws {
        let proxy = try FaultyProxy(before: server, .stall, at: 0.2)
        let seen = Mutex(0)
        struct Stop: Error {}
        let transport = Transport(.init(), stopIfAsked: { if seen.withLock({ $0 }) > 0 { throw Stop() } })
        #expect(throws: Stop.self) {
            try transport.download(
                Location(proxy.url("file")), to: scratch.path("part"), size: size,
                progress: { done in seen.withLock { $0 = done } })
        }
    }

    @Test func `the bandwidth limit is respected`() throws {
        var retryPolicy = Transport.RetryPolicy()
        retryPolicy.bandwidth = 500_000
        let start = ContinuousClock.now
        try download(server.url("file"), Transport(retryPolicy))
        #expect(ContinuousClock.now - start > .milliseconds(900))
        #expect(try isWhole)
    }
}
