import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A registry behind nginx, which requires a password, limits requests, fails, redirects, is slow or stops.
@Suite(
    .tags(.thorough), .serialized,
    .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
struct RegistryBehindNginxTests {
    private let bench: RegistryBench
    private let registry: Registry
    private let front: RegistryFront
    private let bundle: String

    init() throws {
        bench = try RegistryBench()
        registry = try Registry()
        front = try RegistryFront(before: registry)
        try bench.must(
            "moult publish \(registry.address("team/food")) \(try bench.release("1.0.0", 1, bytes: 2_000_000)) -k a.key -q"
        )
        bundle = "blobs/sha256:" + (try bench.must("sha256sum rel/test-1.0.0.tar.zst").prefix(64))
        try bench.follow(front.address("team/food"))
    }

    private func installs() throws {
        try bench.must("moult apply -q && moult verify --deep -q")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a password for nginx is enough if the registry requires none`() throws {
        try front.start(common: "auth_basic feathers; auth_basic_user_file \(front.users);")
        let refused = try bench.run("moult apply", environment: ["HOME": bench.scratch.path("home")])
        #expect(refused.status == 1)
        #expect(refused.errors.contains("skopeo login \(front.host)"), "\(refused.errors)")
        try bench.must(
            "mkdir -p home/.docker && echo '{\"auths\": {\"\(front.host)\": {\"auth\": \"bW91bHQ6ZmVhdGhlcg==\"}}}' > home/.docker/config.json && chmod 600 home/.docker/config.json"
        )
        let home = ["HOME": bench.scratch.path("home")]
        try bench.must("moult apply -q", environment: home)
        #expect(try bench.installed() == "1.0.0")
        try bench.release("2.0.0", 2)
        try bench.must(
            "moult publish \(front.address("team/food")) rel/test-2.0.0.json -k a.key -q && moult apply -q",
            environment: home)
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `the store does not change if a file is not found`() throws {
        try front.start("location ~ \(bundle) { return 404; }")
        let ended = try bench.run("moult apply")
        #expect(ended.status == 1 && ended.errors.contains("404"), "\(ended.errors)")
        #expect(try bench.installed() == "nothing")
        try front.start()
        try installs()
    }

    /// nginx limits the rate of requests, as public registries do.
    @Test func `moult respects the request limit of a server`() throws {
        try front.start(
            "error_page 429 = @wait; location @wait { add_header Retry-After 1 always; return 429; }",
            common: "limit_req zone=all; limit_req_status 429;",
            http: "limit_req_zone $server_port zone=all:1m rate=2r/s;")
        try installs()
        let requests = try front.requests()
        #expect(requests.contains { $0.hasSuffix(" 429") })
        // moult pauses after each refusal, so two refusals never follow each other.
        #expect(!zip(requests, requests.dropFirst()).contains { $0.hasSuffix(" 429") && $1.hasSuffix(" 429") })
    }

    @Test(arguments: [500, 502, 503]) func `a temporary server error is retried`(status: Int) throws {
        try front.start("location ~ /blobs/ { return \(status); }")
        let ended = try bench.run("moult apply")
        #expect(ended.status == 75, "\(ended.errors)")
        #expect(ended.errors.contains("\(status)"), "\(ended.errors)")
        #expect(try bench.installed() == "nothing")
        try front.start()
        try installs()
    }

    /// Under the other name, the registry is a different host for the client.
    @Test func `files are fetched from the host of a redirect`() throws {
        try front.start("location ~ /blobs/ { return 307 http://localhost:\(registry.port)$request_uri; }")
        try installs()
        #expect(try front.requests().contains { $0.hasSuffix("\(bundle) 307") })
    }

    @Test func `moult waits for a slow response unless its rate is below the minimum`() throws {
        try front.start("location ~ \(bundle) { PASS limit_rate 400k; }")
        let begun = ContinuousClock.now
        try installs()
        #expect(ContinuousClock.now - begun > .seconds(2))
        try bench.must("chmod -R u+w store && rm -rf store")
        try bench.follow(front.address("team/food"))
        try front.start("location ~ \(bundle) { PASS limit_rate 200; }")
        #expect(try bench.run("moult apply").status == 75)
        #expect(try bench.installed() == "nothing")
    }

    /// nginx is killed while it sends the bundle, and then restarted.
    @Test func `an interrupted transfer is resumed where it stopped`() throws {
        let slow = "location ~ \(bundle) { PASS limit_rate 200k; }"
        try front.start(slow)
        let update = try Background([
            try BuiltMoult.path(), "apply", "-q", "--store", bench.scratch.path("store"),
        ])
        let downloads = bench.scratch.path("store/.moult/downloads")
        func part() throws -> Int {
            guard let name = try Files.list(downloads).first(where: { $0.hasSuffix(".part") }) else { return 0 }
            return try Files.facts("\(downloads)/\(name)")?.size ?? 0
        }
        try update.wait { try Files.facts(downloads) != nil && part() > 100_000 }
        try front.start()
        _ = try update.end()
        #expect(try front.requests().contains { $0.hasSuffix("\(bundle) 206") })
        try installs()
    }
}
