import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A registry behind a network or a proxy that fails.
@Suite(
    .tags(.thorough), .serialized,
    .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
struct FailingRegistryTests {
    private let bench: RegistryBench
    private let registry: Registry
    private let proxy: RegistryProxy
    private let place: String

    init() throws {
        bench = try RegistryBench()
        registry = try Registry()
        proxy = try RegistryProxy(before: registry)
        place = proxy.address("team/food")
        try bench.publish("1.0.0", 1, to: place)
        try bench.follow(place)
    }

    private func bundle(_ version: String = "1.0.0") throws -> String {
        "blobs/sha256:" + (try bench.must("sha256sum rel/test-\(version).tar.zst").prefix(64))
    }

    private func message(_ line: String, status: Int32) throws -> String { try bench.refusal(line, status: status) }

    @Test(arguments: [408, 429, 500, 502, 503, 504]) func `a temporary failure is retried`(status: Int) throws {
        try proxy.inject(.status(status), at: ".", times: 2)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        #expect(try proxy.requests().prefix(3).map(\.isFaulty) == [true, true, false])
    }

    @Test func `a request is sent again after the pause that a registry requests`() throws {
        try proxy.inject(.status(429, retryAfter: "2"), at: ".", times: 1)
        let begun = ContinuousClock.now
        try bench.must("moult apply -q")
        #expect(ContinuousClock.now - begun >= .seconds(2))
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a command does not wait if a registry requests a pause beyond the command's deadline`() throws {
        try proxy.inject(.status(429, retryAfter: "3600"), at: ".")
        let begun = ContinuousClock.now
        #expect(
            try message("moult check", status: 75) == """
                moult: error: cannot get \(place):feed: the server replied with status 429 (too many requests)
                  Try again later.

                """)
        #expect(ContinuousClock.now - begun < .seconds(60))
        #expect(try proxy.requests().count == 1)
    }

    @Test(arguments: [(401, "skopeo login"), (403, "skopeo login"), (404, "\"feed\" in")])
    func `the error for a refused request suggests the next step`(status: Int, now: String) throws {
        try proxy.inject(.status(status), at: ".")
        let text = try message("moult check", status: 1)
        #expect(text.contains("\(place)") && text.contains(now), "\(text)")
        // The request is not repeated.
        #expect(try proxy.requests().count == 1)
    }

    @Test func `an interrupted download is resumed`() throws {
        let bundle = try bundle()
        try proxy.inject(.cut, at: bundle, times: 1)
        try bench.must("moult apply -q && moult verify --deep -q")
        #expect(try bench.installed() == "1.0.0")
        // The second request asks for the rest of the file.
        #expect(try proxy.requests().filter { $0.line.hasSuffix(bundle) }.count == 2)
    }

    @Test(arguments: ["manifests/feed", "GET .*blobs/"])
    func `a small file whose download was interrupted is fetched again`(part: String)
        throws
    {
        try proxy.inject(.cut, at: "GET .*\(part)", times: 1)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `blobs are fetched from the host of a redirect`() throws {
        let storage = try RegistryProxy(before: registry)
        try proxy.inject(.redirect(to: "http://127.0.0.1:\(storage.port)"), at: "GET .*/blobs/")
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        #expect(try storage.requests().count >= 3)
    }

    @Test func `an upload that is redirected is refused`() throws {
        try proxy.inject(.redirect(to: "http://127.0.0.1:\(registry.port)"), at: "^P")
        try bench.release("2.0.0", 2)
        let text = try message("moult publish \(place) rel/test-2.0.0.json -k a.key", status: 3)
        #expect(text.contains("redirects"), "\(text)")
    }

    /// A proxy terminates TLS, and the registry does not know that.
    @Test func `an upload to a URL with another scheme is refused`() throws {
        try proxy.inject(.header("Location", "https://127.0.0.1:\(proxy.port)/v2/x"), at: "^POST")
        try bench.release("2.0.0", 2)
        #expect(
            try message("moult publish \(place) rel/test-2.0.0.json -k a.key", status: 3) == """
                moult: error: cannot push to \(place): the registry returned an upload URL with the scheme https
                  Report this to the operator of the registry. A proxy in front of it must set X-Forwarded-Proto.

                """)
    }

    @Test func `moult gives up on a registry below the minimum rate`() throws {
        try proxy.inject(.drip(20), at: try bundle())
        try bench.set("patience", 1)
        #expect(try bench.run("moult apply").status == 75)
        #expect(try bench.installed() == "nothing")
        try proxy.heal()
        try bench.must("moult apply -q")
    }

    @Test(arguments: ["HEAD", "POST", "PUT .*uploads", "PUT .*manifests/2", "PUT .*manifests/feed"])
    func `publish continues after a lost response`(part: String) throws {
        try proxy.inject(.loseAnswer, at: "^\(part)", times: 1)
        try bench.publish("2.0.0", 2, to: place)
        #expect(try proxy.requests().contains { $0.isFaulty })
        try proxy.heal()
        try bench.must("moult apply -q && moult publish \(place) --check -q")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `a large upload resumes after the last complete chunk`() throws {
        let manifest = try bench.release("2.0.0", 2, bytes: 70 << 20)
        // The second of three chunks is lost before it reaches the registry.
        try proxy.inject(.refuse, at: "^PATCH", skip: 1, times: 1)
        try bench.must("moult publish \(place) \(manifest) -k a.key -q")
        let lines = try proxy.requests().map(\.line)
        #expect(lines.count { $0.hasPrefix("PATCH") } == 3)
        #expect(lines.contains { $0.hasPrefix("GET /v2/team/food/blobs/uploads/") })
        // On a slow machine, the registry reads the file for some seconds before it responds.
        try bench.set("patience", 60)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `a large upload starts again if the registry has lost it`() throws {
        let manifest = try bench.release("2.0.0", 2, bytes: 40 << 20)
        try proxy.inject(.loseAnswer, at: "^PATCH", times: 1)
        try bench.must("moult publish \(place) \(manifest) -k a.key -q && moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `a feed that changes while it is published is not overwritten`() throws {
        try bench.release("2.0.0", 2)
        // The command compares the tag with the response to its last HEAD request.
        try proxy.inject(
            .header("Docker-Content-Digest", "sha256:" + String(repeating: "0", count: 64)), at: "HEAD .*manifests/feed"
        )
        #expect(
            try message("moult publish \(place) rel/test-2.0.0.json -k a.key", status: 75) == """
                moult: error: the feed at \(place) has changed: another publisher replaced it during this command
                  Run the command again.

                """)
        try proxy.heal()
        #expect(try bench.must("moult publish \(place) --check").contains("serial 1, 1 release"))
    }

    @Test func `a publisher that is stopped leaves the old feed`() throws {
        try bench.release("2.0.0", 2)
        try proxy.inject(.ignore, at: "^PUT .*manifests/2")
        let moult = try BuiltMoult.path()
        let publisher = try Background([
            moult, "publish", place, bench.scratch.path("rel/test-2.0.0.json"), "-k", bench.scratch.path("a.key"),
        ])
        try publisher.wait { try proxy.requests().contains { $0.isFaulty } }
        publisher.signal(SIGINT)
        #expect(throws: (any Error).self) { try publisher.end() }
        try proxy.heal()
        #expect(try bench.must("moult publish \(place) --check").contains("serial 1, 1 release"))
    }
}

/// The publisher is killed at each of its requests: stores can follow the feed at every moment, and the same command
/// completes the work.
@Suite(
    .tags(.thorough, .slow), .serialized,
    .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
struct KilledRegistryPublisherTests {
    @Test(arguments: [false, true]) func `a publisher that is killed at any request leaves a valid feed`(isSeen: Bool)
        throws
    {
        var number = 0
        while try kill(at: number, isSeen: isSeen) { number += 1 }
        // The publisher reads the feed, uploads six blobs with up to three requests each, and writes two tags after two
        // checks.
        #expect(number > 15)
    }

    /// From a given request on, the registry stores nothing, as with a full disk.
    @Test func `the feed stays valid if the registry fails from any request on`() throws {
        var number = 0
        while true {
            let bench = try RegistryBench()
            let registry = try Registry()
            let proxy = try RegistryProxy(before: registry)
            let direct = registry.address("team/food")
            try bench.publish("1.0.0", 1, to: direct)
            try bench.follow(direct)
            try bench.must("moult apply -q")
            let manifest = try bench.release("2.0.0", 2)
            try proxy.inject(.status(507), at: ".", skip: number)
            let line = "moult publish -q \(proxy.address("team/food")) \(manifest) -k a.key"
            let ended = try bench.run(line)
            // The last requests read back what is public already.
            let isPublic = try bench.run("moult check -q").status == 2
            #expect(isPublic || ended.status != 0, "request \(number)")
            try bench.must("moult publish \(direct) --check --trust a.pub -q && moult apply -q")
            #expect(try bench.installed() == (isPublic ? "2.0.0" : "1.0.0"), "request \(number)")
            if ended.status == 0 { break }
            #expect(ended.errors.contains("507"), "request \(number): \(ended.errors)")
            try proxy.heal()
            try bench.must("\(line) && moult apply -q && moult verify --deep -q")
            #expect(try bench.installed() == "2.0.0", "request \(number)")
            number += 1
        }
        #expect(number > 15)
    }

    /// Kills the publisher at a request, and checks what stores find then. Returns false if the command ended before this
    /// request. `isSeen` says whether the registry receives the request.
    private func kill(at number: Int, isSeen: Bool) throws -> Bool {
        let bench = try RegistryBench()
        let registry = try Registry()
        let proxy = try RegistryProxy(before: registry)
        let direct = registry.address("team/food")
        try bench.publish("1.0.0", 1, to: direct)
        try bench.follow(direct)
        try bench.must("moult apply -q")
        let manifest = try bench.release("2.0.0", 2)
        try proxy.inject(isSeen ? .hang : .ignore, at: ".", skip: number, times: 1)
        let publisher = try Program(
            [
                try BuiltMoult.path(), "publish", "-q", proxy.address("team/food"), bench.scratch.path(manifest), "-k",
                bench.scratch.path("a.key"),
            ])
        while publisher.isRunning, try !proxy.requests().contains(where: \.isFaulty) { usleep(1000) }
        let isStruck = try proxy.requests().contains(where: \.isFaulty)
        if isStruck, isSeen {
            // The registry responds before the proxy stops.
            let seen = try #require(proxy.requests().last).line.split(separator: " ")
            while try !registry.requests().contains(where: {
                $0.method == seen[0] && $0.path == seen[1].prefix(while: { $0 != "?" })
            }) { usleep(1000) }
        }
        publisher.signal(SIGKILL)
        let status = publisher.wait()
        guard isStruck else {
            #expect(status == 0)
            return false
        }
        // A store finds the complete old release or the complete new one.
        let isPublic = try bench.run("moult check -q").status == 2
        try bench.must("moult apply -q && moult verify --deep -q")
        #expect(try bench.installed() == (isPublic ? "2.0.0" : "1.0.0"), "request \(number)")
        try bench.must("moult publish \(direct) --check --trust a.pub -q")
        // The same command completes the work.
        try bench.must("moult publish \(direct) \(manifest) -k a.key -q && moult apply -q")
        #expect(try bench.installed() == "2.0.0", "request \(number)")
        try bench.must("moult publish \(direct) --check --trust a.pub -q")
        return true
    }
}
