import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Attacks by a registry, or by a user who may push to it. Each is refused and changes nothing.
@Suite(
    .tags(.thorough), .serialized,
    .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
struct RegistryAttackTests {
    private let bench: RegistryBench
    private let registry: Registry
    private let proxy: RegistryProxy
    private let place: String

    init() throws {
        bench = try RegistryBench()
        registry = try Registry()
        proxy = try RegistryProxy(before: registry)
        place = proxy.address("team/food")
        try bench.must("moult publish public \(try bench.release("1.0.0", 1)) -k a.key -q")
        try bench.publish("1.0.0", 1, to: registry.address("team/food"))
        try bench.follow(place)
    }

    /// Expects that `apply`, `plan` and `check` report the same error, and do not change the store.
    private func refused(_ message: String, status: Int32 = 3) throws {
        func state() throws -> Tree {
            try Tree(bench.scratch.path("store"), times: false, skipping: [".moult/downloads", ".moult/lock"])
        }
        let before = try state()
        for verb in ["check", "plan", "apply"] {
            let ended = try bench.run("moult \(verb)")
            #expect(ended.status == status, "\(verb): \(ended.errors)")
            #expect(ended.errors.contains(message), "\(verb): \(ended.errors)")
        }
        #expect(try state() == before)
    }

    private func put(_ files: String, type: String = "feed", change: String = "pass") throws {
        let names = files.split(separator: " ").map { String($0) }
        try bench.put(names, to: registry, "team/food", tag: "feed", type: type, change: change)
    }

    private func signFeed(_ change: (JSON) -> JSON) throws {
        let path = bench.scratch.path("public/feed.json")
        let feed = try JSON(parsing: try Files.read(path, limit: 1 << 20) ?? [], source: path)
        try Files.replace(path, with: Array(change(feed).pretty.utf8))
        try bench.must("rm public/feed.json*.minisig; moult sign -q public/feed.json -k a.key")
        try put("public/feed.json public/feed.json.minisig")
    }

    // MARK: by a user who may push

    @Test func `a registry feed with arbitrary content is refused`() throws {
        try bench.must("echo '{}' > public/feed.json")
        try put("public/feed.json public/feed.json.minisig")
        try refused("the signature of feed.json is not valid")
    }

    @Test func `a feed without a signature is refused`() throws {
        try put("public/feed.json")
        try refused("feed.json is not signed")
    }

    @Test func `a feed signed by another key is refused`() throws {
        try bench.must("moult keygen b -q --no-password; rm public/*.minisig; moult sign -q public/feed.json -k b.key")
        try put("public/feed.json public/feed.json.minisig")
        try refused("feed.json is not signed by a trusted key")
    }

    @Test func `an old feed under the tag is refused`() throws {
        try bench.must("skopeo copy -q --src-tls-verify=false docker://\(registry.host)/team/food:feed dir:old")
        try bench.publish("2.0.0", 2, to: registry.address("team/food"))
        try bench.must("moult apply -q")
        try bench.must("skopeo copy -q --dest-tls-verify=false dir:old docker://\(registry.host)/team/food:feed")
        try refused("\(place) is older than a feed seen before: its serial is 1, and this store has seen serial 2")
    }

    @Test func `an expired feed is refused`() throws {
        try signFeed { $0.setting("expires", to: "2026-01-01T00:00:00Z") }
        try refused("\(place) has expired: it was valid until 2026-01-01T00:00:00Z")
    }

    @Test func `the feed of another product is refused`() throws {
        try signFeed { $0.setting("product", to: "org.example.other") }
        try refused("\(place) is the feed of org.example.other")
    }

    @Test func `a second feed with the same serial is refused`() throws {
        try bench.must("moult apply -q")
        try signFeed { $0.setting("expires", to: "2030-01-01T00:00:00Z") }
        try refused("\(place) differs from the feed seen before")
    }

    @Test(arguments: [
        (
            "an image", "artifact['artifactType'] = 'application/vnd.example'",
            "artifactType is not a type that moult writes"
        ),
        ("no artifact type", "del artifact['artifactType']", "artifactType is not a type that moult writes"),
        (
            "an index",
            "media = 'application/vnd.oci.image.index.v1+json'; artifact = {'schemaVersion': 2, 'mediaType': media, 'manifests': []}",
            "is not a moult artifact"
        ),
        ("one title twice", "artifact['layers'] += artifact['layers'][:1]", "have the title of an earlier layer"),
        ("no feed in it", "artifact['layers'] = artifact['layers'][1:]", "no feed at"),
        ("a wrong size", "artifact['layers'][0]['size'] += 1", "does not have the size that the registry lists"),
        ("a huge size", "artifact['layers'][0]['size'] = 1 << 40", "is too large"),
    ])
    func `another artifact under the tag is refused`(name: String, change: String, message: String) throws {
        try put("public/feed.json public/feed.json.minisig", change: change)
        let status: Int32 = name == "no feed in it" ? 1 : 3
        try refused(message, status: status)
    }

    @Test func `an artifact that is too large is refused`() throws {
        try put("public/feed.json public/feed.json.minisig", change: "artifact['annotations'] = {'x': 'y' * (2 << 20)}")
        try refused("is larger than 1.00 MiB")
    }

    /// A publisher writes the files of a feed to a directory, and a file name must not lead out of that directory.
    @Test func `a file name that leads out of the feed is refused`() throws {
        try put(
            "public/feed.json public/feed.json.minisig",
            change: "artifact['layers'][1]['annotations']['org.opencontainers.image.title'] = '../../x'")
        let ended = try bench.run("moult publish \(registry.address("team/food")) -k a.key")
        #expect(ended.status == 3)
        #expect(ended.errors.contains("has a file named \"../../x\""), "\(ended.errors)")
    }

    // MARK: by the registry itself

    private func digest(_ file: String) throws -> String { try bench.must("sha256sum \(file)").prefix(64).description }

    @Test func `a manifest with different bytes is refused`() throws {
        try bench.release("2.0.0", 2)
        try proxy.inject(.replace(bench.scratch.path("rel/test-2.0.0.json")), at: try digest("rel/test-1.0.0.json"))
        for verb in ["plan", "apply"] {
            let ended = try bench.run("moult \(verb)")
            #expect(ended.status == 3)
            #expect(ended.errors.contains("does not match its digest in the registry"), "\(ended.errors)")
        }
        #expect(try bench.installed() == "nothing")
    }

    @Test func `a bundle with different bytes is refused`() throws {
        let size = try Files.facts(bench.scratch.path("rel/test-1.0.0.tar.zst"))?.size ?? 0
        try bench.must("head -c \(size) /dev/urandom > x")
        try proxy.inject(.replace(bench.scratch.path("x")), at: try digest("rel/test-1.0.0.tar.zst"))
        let ended = try bench.run("moult apply")
        #expect(ended.status == 3)
        #expect(ended.errors.contains("test-1.0.0.tar.zst does not match the release"), "\(ended.errors)")
        #expect(try bench.installed() == "nothing")
    }

    /// The digest in the header is not trusted.
    @Test func `a wrong digest in a header is ignored`() throws {
        try proxy.inject(
            .header("Docker-Content-Digest", "sha256:" + String(repeating: "0", count: 64)), at: ".")
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        // Because the header cannot be trusted, the feed is downloaded each time.
        try proxy.inject(
            .header("Docker-Content-Digest", "sha256:" + String(repeating: "0", count: 64)), at: ".")
        try bench.must("moult check -q")
        #expect(try proxy.requests().count > 1)
    }

    @Test(arguments: ["GET .*manifests/feed", "GET .*blobs/"]) func `an endless body is refused`(part: String) throws {
        try proxy.inject(.endless, at: part)
        try refused("is larger than")
    }

    @Test func `an endless bundle is refused`() throws {
        try proxy.inject(.endless, at: try digest("rel/test-1.0.0.tar.zst"))
        let ended = try bench.run("moult apply")
        #expect(ended.status == 1)
        #expect(ended.errors.contains("the server sent more than the"), "\(ended.errors)")
        #expect(try bench.installed() == "nothing")
    }

    /// Responses to HEAD requests have no body; responses about uploads and tokens are small.
    @Test func `publish does not read endless responses`() throws {
        try bench.release("2.0.0", 2)
        for part in ["^HEAD", "^POST", "^PUT", "^GET"] {
            try proxy.inject(.endless, at: part)
            let ended = try bench.run("timeout 60 moult publish \(place) rel/test-2.0.0.json -k a.key")
            #expect([1, 3, 75].contains(ended.status), "\(part): \(ended.status) \(ended.errors)")
        }
        try proxy.heal()
        #expect(try bench.must("moult publish \(place) --check").contains("serial 1, 1 release"))
    }

    @Test func `a redirect to another scheme is refused`() throws {
        for scheme in ["ftp://127.0.0.1", "file://", "https://127.0.0.1:1"] {
            try proxy.inject(.redirect(to: scheme), at: "GET .*/blobs/")
            let ended = try bench.run("moult check")
            #expect(ended.status == 3)
            #expect(ended.errors.contains("redirect"), "\(ended.errors)")
        }
    }
}
