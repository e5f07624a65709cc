import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult publish` to a registry, and other programs that use the result.
@Suite(
    .tags(.thorough), .serialized,
    .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
struct RegistryPublishTests {
    private let bench: RegistryBench
    private let registry: Registry
    private let place: String

    init() throws {
        bench = try RegistryBench()
        registry = try Registry()
        place = registry.address("team/food")
    }

    private func uploads(_ body: () throws -> Void) throws -> Int {
        try registry.requests(of: body).count { $0.method == "POST" }
    }

    @Test func `publish does not upload files that are already in the registry`() throws {
        let release = try bench.release("1.0.0", 1)
        // The manifest, its signature, the bundle, the feed, its signature and the empty configuration are uploaded.
        #expect(try uploads { try bench.must("moult publish \(place) \(release) -k a.key -q") } == 6)
        // The feed and its signature are uploaded.
        #expect(try uploads { try bench.must("moult publish \(place) \(release) -k a.key -q") } == 2)
        #expect(try uploads { try bench.must("moult publish \(place) -k a.key -q") } == 2)
        #expect(try bench.must("moult publish \(place) --check --trust a.pub").contains("serial 3, 1 release, "))
    }

    @Test func `files of another repository are mounted`() throws {
        let release = try bench.release("1.0.0", 1)
        try bench.must("moult publish \(place) \(release) -k a.key -q")
        let other = registry.address("other/food")
        let second = try bench.release("2.0.0", 2)
        let requests = try registry.requests {
            try bench.must("moult publish \(other) \(release) \(second) -k a.key -q --mount \(place)")
        }
        let bundle = try bench.must("sha256sum rel/test-1.0.0.tar.zst").prefix(64)
        #expect(requests.contains { $0.path.hasSuffix(bundle) && $0.method == "HEAD" && $0.status == 404 })
        // Only the new feed and the second release are uploaded. (A feed with only the first release would also be
        // mounted if it was signed within the same second.)
        #expect(requests.count { $0.method == "PUT" && $0.path.contains("/blobs/uploads/") } == 5)
        try bench.follow(other)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    private func layers(of tag: String) throws -> [String] {
        let text = try bench.must("skopeo inspect --raw --tls-verify=false docker://\(registry.host)/team/food:\(tag)")
        let layers = try JSON(parsing: Array(text.utf8), source: "artifact")["layers"]?.array ?? []
        return layers.map { $0["annotations"]?["org.opencontainers.image.title"]?.string ?? "" }
    }

    @Test(arguments: ["--patches 0", "--keep-releases 1"])
    func `a patch that leaves the feed is named, and leaves the artifact of its release`(option: String) throws {
        try bench.must("sqlite3 food.db 'CREATE TABLE food(noise BLOB); INSERT INTO food VALUES(randomblob(100000))'")
        for number in 1...2 {
            try bench.must(
                """
                sqlite3 food.db "INSERT INTO food VALUES('\(number)')"
                moult pack -q food.db --product org.example.test --version \(number).0.0 -o packed
                moult publish -q \(place) packed/test-\(number).0.0.json -k a.key
                """)
        }
        let name = "test-2.0.0.food.from-1.0.0.patch"
        let all = try layers(of: "2.0.0")
        #expect(all.contains(name))
        try bench.must("moult publish -q \(place) -k a.key")
        #expect(try layers(of: "2.0.0") == all)
        let said = try bench.must("moult publish \(place) -k a.key \(option)")
        #expect(said.hasPrefix("- \(name)\n"), "\(said)")
        #expect(try layers(of: "2.0.0") == all.filter { $0 != name })
        try bench.must("moult publish -q \(place) --check --trust a.pub")
        try bench.follow(place)
        #expect(try bench.must("moult apply -q; moult status --json").contains("\"version\":\"2.0.0\""))
    }

    @Test func `a large file is uploaded in chunks`() throws {
        let release = try bench.release("1.0.0", 1, bytes: 40 << 20)
        let requests = try registry.requests { try bench.must("moult publish \(place) \(release) -k a.key -q") }
        #expect(requests.count { $0.method == "PATCH" && $0.status == 202 } == 1)
        try bench.must("moult apply -q --create --store store --key a.pub \(place)")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `other tools can download the files`() throws {
        try bench.publish("1.0.0", 1, to: place)
        let image = "docker://\(registry.host)/team/food"
        let text = try bench.must("skopeo inspect --raw --tls-verify=false \(image):1.0.0")
        let manifest = try JSON(parsing: Array(text.utf8), source: "artifact")
        #expect(manifest["artifactType"]?.string == "application/vnd.moult.release.v1")
        let layers = try #require(manifest["layers"]?.array)
        let names = layers.map { $0["annotations"]?["org.opencontainers.image.title"]?.string ?? "" }
        #expect(names == ["test-1.0.0.json", "test-1.0.0.json.minisig", "test-1.0.0.tar.zst"])
        // skopeo copies the release by its digest.
        let digest = try bench.must("skopeo inspect --raw --tls-verify=false \(image):1.0.0 | sha256sum").prefix(64)
        try bench.must("skopeo copy -q --src-tls-verify=false \(image)@sha256:\(digest) dir:pulled")
        for (layer, name) in zip(layers, names) {
            let blob = try #require(layer["digest"]?.string).dropFirst("sha256:".count)
            if name.hasSuffix(".minisig") {
                try bench.must("cp pulled/\(blob) rel/\(name)")
            } else {
                try bench.must("cmp pulled/\(blob) rel/\(name)")
            }
        }
        try bench.must("cd rel && moult apply -q --create --store ../store --key ../a.pub test-1.0.0.json")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a copied repository is a working feed`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.publish("2.0.0", 2, to: place)
        let copy = try Registry()
        for tag in ["1.0.0", "2.0.0", "feed"] {
            try bench.must(
                """
                skopeo copy -q --src-tls-verify=false --dest-tls-verify=false \
                docker://\(registry.host)/team/food:\(tag) docker://\(copy.host)/mirror/food:\(tag)
                """)
        }
        try bench.follow(copy.address("mirror/food"))
        try bench.must("moult apply -q && moult publish \(copy.address("mirror/food")) --check --trust a.pub -q")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `publish --check names a file that the registry has lost`() throws {
        try bench.publish("1.0.0", 1, to: place)
        let bundle = try bench.must("sha256sum rel/test-1.0.0.tar.zst").prefix(64)
        try bench.must("curl -fsS -X DELETE http://\(registry.host)/v2/team/food/blobs/sha256:\(bundle)")
        let ended = try bench.run("moult publish \(place) --check --trust a.pub")
        #expect(ended.status == 1)
        #expect(
            ended.output == """
                ✗ test-1.0.0.tar.zst: it is missing
                  Restore the file from a copy, or publish the release again: moult publish \(place) MANIFEST --key FILE

                """)
        try bench.must("moult publish \(place) rel/test-1.0.0.json -k a.key -q && moult publish \(place) --check -q")
    }

    @Test func `publish --check fails for a repository without a feed`() throws {
        #expect(
            try bench.refusal("moult publish \(place) --check", status: 1) == """
                moult: error: no feed at \(place): it has no tag "feed"
                  Specify a repository that contains a feed: oci://HOST/NAME

                """)
        try bench.follow(place)
        #expect(try bench.run("moult check").status == 1)
    }

    /// Signing the next feed would endorse releases that an attacker has added to this one.
    @Test func `publish refuses to sign a feed that another key signed`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.must("moult keygen b -q --no-password")
        #expect(
            try bench.refusal("moult publish \(place) -k b.key", status: 3) == """
                moult: error: the feed at \(place) is not signed with any of the specified keys: the new feed would endorse the releases in the old one
                  Add the key that signed the old feed: --key FILE

                """)
    }

    @Test(arguments: [
        (
            "PLACE:1.0.0 -k a.key",
            "DIR must be a repository without a tag: moult chooses the tags itself", 64
        ),
        ("PLACE --check --tidy", "--tidy needs a directory: a registry removes its own leftovers", 64),
        ("public --mount PLACE -k a.key", "--mount needs a feed in a registry", 64),
        (
            "oci+http://registry.example.org/x -k a.key",
            "oci+http://registry.example.org/x cannot be used: plain HTTP is for a registry on this machine only", 3
        ),
        (
            "oci://me:secret@example.org/x -k a.key", "oci://***@example.org/x cannot be used: it contains a password",
            3
        ),
        ("oci://example.org/Upper -k a.key", "oci://example.org/Upper cannot be used: it is not a repository", 3),
        ("oci://example.org -k a.key", "oci://example.org cannot be used: it is not a repository", 3),
    ])
    func `an invalid address of a registry is refused`(arguments: String, message: String, status: Int32) throws {
        let line = "moult publish \(arguments.replacing("PLACE", with: place))"
        let ended = try bench.run(line)
        #expect(ended.status == status)
        #expect(ended.errors.contains(message), "\(ended.errors)")
        #expect(try registry.requests() == [])
    }
}
