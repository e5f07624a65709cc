import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Several publishers of one feed in a registry, which has no conditional requests for tags.
@Suite(
    .tags(.thorough), .serialized,
    .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
struct RegistryRaceTests {
    private let bench: RegistryBench
    private let registry: Registry
    private let place: String
    private var api: String { "http://\(registry.host)/v2/team/food" }
    private static let type = "application/vnd.oci.image.manifest.v1+json"

    init() throws {
        bench = try RegistryBench()
        registry = try Registry()
        place = registry.address("team/food")
        try bench.publish("1.0.0", 1, to: place)
    }

    private func versions() throws -> Set<String> {
        try bench.must(
            "rm -rf store; moult init -q --product org.example.test --key a.pub --feed \(place); moult check -q",
            status: 2)
        let bytes = try Files.read(bench.scratch.path("store/.moult/feed/feed.json"), limit: 1 << 20) ?? []
        return Set(
            try JSON(parsing: bytes, source: "feed")["releases"]?.array?.compactMap { $0["version"]?.string } ?? [])
    }

    private func artifact(_ tag: String) throws {
        try bench.must("curl -fsS -H 'Accept: \(Self.type)' \(api)/manifests/\(tag) -o \(tag).artifact")
    }

    private func put(_ name: String, at tag: String) throws {
        try bench.must(
            "curl -fsS -X PUT -H 'Content-Type: \(Self.type)' --data-binary @\(name).artifact \(api)/manifests/\(tag)")
    }

    @Test func `of ten publishers at the same moment, none loses a release with exit status 0`() throws {
        let numbers = 1...10
        for number in numbers { try bench.release("1.0.\(number)", number + 1) }
        let commands = numbers.map { number in
            "(moult publish \(place) rel/test-1.0.\(number).json -k a.key -q; echo 1.0.\(number) $?) &"
        }
        let ended = try bench.run(commands.joined(separator: "\n") + "\nwait")
        let results = ended.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        let done = results.filter { $0[1] == "0" }.map { $0[0] }
        #expect(
            Set(results.map { $0[1] }).isSubset(of: ["0", "75"]) && !done.isEmpty, "\(ended.output)\(ended.errors)")
        #expect(try versions().isSuperset(of: done), "\(ended.output)")
        // Those that ended with 75 publish again.
        for result in results where result[1] == "75" {
            try bench.must("moult publish \(place) rel/test-\(result[0]).json -k a.key -q")
        }
        #expect(try versions() == Set(numbers.map { "1.0.\($0)" } + ["1.0.0"]))
    }

    @Test func `a feed that another publisher has overwritten is taken in and named`() throws {
        try artifact("feed")
        try bench.publish("2.0.0", 2, to: place)
        // The other publisher has read the feed from before that, and overwrites it.
        let mine = try bench.must("curl -fsS \(api)/tags/list")
        try put("feed", at: "feed")
        let tag = try #require(mine.split(separator: "\"").first { $0.hasPrefix("feed-2-") })
        try artifact(String(tag))
        try bench.must(
            "curl -fsS -X DELETE -o /dev/null \(api)/manifests/sha256:$(sha256sum < \(tag).artifact | cut -c-64)")
        try bench.publish("3.0.0", 3, to: place)
        try put(String(tag), at: String(tag))
        #expect(try versions() == ["1.0.0", "3.0.0"])
        let ended = try bench.run("moult publish \(place) -k a.key")
        #expect(ended.status == 0)
        #expect(
            ended.errors == "moult: warning: taken in from a feed that was overwritten: added 2.0.0\n",
            "\(ended.errors)")
        #expect(try versions() == ["1.0.0", "2.0.0", "3.0.0"])
        #expect(try bench.run("moult publish \(place) -k a.key").errors == "")
        try bench.must("moult publish \(place) --check --trust a.pub -q")
    }

    @Test func `a repository that has lost its tag does not start a new feed`() throws {
        try artifact("feed")
        try bench.must(
            "curl -fsS -X DELETE -o /dev/null \(api)/manifests/sha256:$(sha256sum < feed.artifact | cut -c-64)")
        let text = try bench.refusal("moult publish \(place) rel/test-1.0.0.json -k a.key", status: 3)
        #expect(text.hasPrefix("moult: error: \(place) has no tag \"feed\", but has others, such as \""), "\(text)")
        try bench.must("moult publish \(place) rel/test-1.0.0.json -k a.key -q --new")
        #expect(
            try bench.refusal("moult publish \(place) -k a.key --new", status: 3).contains(
                "\(place) has a feed already"))
    }

    @Test func `a feed with a bundle that the registry has lost is not signed`() throws {
        let bundle = try bench.must("sha256sum rel/test-1.0.0.tar.zst").prefix(64)
        try bench.must("curl -fsS -X DELETE \(api)/blobs/sha256:\(bundle)")
        #expect(
            try bench.refusal("moult publish \(place) -k a.key", status: 3) == """
                moult: error: the feed at \(place) cannot be renewed: it lists test-1.0.0.tar.zst, which the registry does not have
                  Publish release 1.0.0 again from its manifest, or withdraw it with --withdraw.

                """)
        try bench.must("moult publish \(place) rel/test-1.0.0.json -k a.key -q && moult publish \(place) -k a.key -q")
    }
}
