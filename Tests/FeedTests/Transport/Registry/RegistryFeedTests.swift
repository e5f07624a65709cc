import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A feed in a container registry has all features of a feed in a directory.
@Suite(
    .tags(.thorough), .serialized,
    .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
struct RegistryFeedTests {
    private let bench: RegistryBench
    private let registry: Registry
    private let place: String

    init() throws {
        bench = try RegistryBench()
        registry = try Registry()
        place = registry.address("team/food")
    }

    @Test func `a store follows a feed in a registry`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.follow(place)
        let before = try Tree(bench.scratch.path("store"))
        let plan = try bench.run("moult plan")
        #expect(plan.status == 2)
        #expect(plan.output.contains("feed: \(place), serial 1, "))
        #expect(try Tree(bench.scratch.path("store")) == before)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        try bench.publish("2.0.0", 2, to: place)
        #expect(try bench.run("moult check -q").status == 2)
        try bench.must("moult apply -q && moult verify --deep -q")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `an unchanged feed costs one HEAD request`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.follow(place)
        try bench.must("moult apply -q")
        let poll = Registry.Request(method: "HEAD", path: "/v2/team/food/manifests/feed", status: 200)
        #expect(try registry.requests { try bench.must("moult check -q") } == [poll])
        #expect(try registry.requests { try bench.must("moult apply -q") } == [poll])
    }

    @Test func `an unchanged feed that has expired is refused`() throws {
        try bench.must("moult publish public \(try bench.release("1.0.0", 1)) -k a.key -q")
        let path = bench.scratch.path("public/feed.json")
        let feed = try JSON(parsing: try Files.read(path, limit: 1 << 20) ?? [], source: path)
        let expires = Timestamp(seconds: Timestamp.now.seconds + 3)
        try bench.must("rm public/feed.json*")
        try Files.writeNew(Array(feed.setting("expires", to: .string("\(expires)")).pretty.utf8), to: path)
        try bench.must("moult sign -q public/feed.json -k a.key")
        try bench.put(["public/feed.json", "public/feed.json.minisig"], to: registry, "team/food", tag: "feed")
        try bench.follow(place)
        // The check downloads the feed and keeps it.
        #expect(try bench.run("moult check -q").status == 2)
        try bench.must("until [ $(date +%s) -gt \(expires.seconds) ]; do sleep 0.1; done")
        var refusal = ""
        let requests = try registry.requests { refusal = try bench.refusal("moult check", status: 3) }
        #expect(
            refusal.replacing(/machine shows [-0-9TZ:]+/, with: "machine shows NOW") == """
                moult: error: \(place) has expired: it was valid until \(expires), and the clock of this machine shows NOW
                  If the clock is right, an attacker may be withholding a newer feed: ask the publisher, or use another mirror.

                """)
        #expect(requests.map(\.method) == ["HEAD"])
    }

    @Test func `a withdrawn release is reported, and not installed`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.publish("2.0.0", 2, to: place)
        try bench.follow(place)
        try bench.must("moult apply -q && moult publish \(place) --withdraw 2.0.0 --reason 'wrong names' -k a.key -q")
        #expect(try bench.must("moult check").contains("2.0.0 was withdrawn by its publisher: wrong names\n"))
        try bench.must("moult apply -q --create --store other --key a.pub \(place)")
        #expect(try bench.installed(in: "other") == "1.0.0")
    }

    @Test func `a release is withheld from machines that its rollout does not include`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.follow(place)
        try bench.must("moult apply -q")
        try bench.publish("2.0.0", 2, to: place, "-k a.key --rollout 0")
        #expect(try bench.run("moult check").output.contains("2.0.0 is skipped: it is rolled out to 0 % of machines"))
        try bench.must("moult publish \(place) --release 2.0.0 --rollout 100 -k a.key -q && moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `stores follow a key change through a registry`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.follow(place)
        try bench.must("moult apply -q && moult keygen b -q --no-password")
        try bench.must("moult publish \(place) --key a.key --key b.key --trust b.pub -q")
        try bench.publish("2.0.0", 2, to: place, "-k b.key")
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        // From now on, the old key signs nothing.
        try bench.release("3.0.0", 3)
        #expect(try bench.run("moult publish \(place) rel/test-3.0.0.json -k a.key").status == 3)
        // A store that knows only the old key finds the key list.
        try bench.must("moult apply -q --create --store other --key a.pub \(place)")
        #expect(try bench.installed(in: "other") == "2.0.0")
    }

    @Test func `a registry feed can have separate root, release and timestamp keys`() throws {
        try bench.must("moult keygen root -q --no-password && moult keygen time -q --no-password")
        try bench.must(
            "moult trust keys -q --product org.example.test --root root.pub --release a.pub --timestamp time.pub --key root.key"
        )
        try bench.must(
            "moult publish \(place) \(try bench.release("1.0.0", 1)) -k a.key -k time.key --trust keys/keys-1.json -q")
        try bench.must("moult init -q --product org.example.test --key root.pub --feed \(place) && moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        // The timestamp key alone renews the feed, and the release's own signature is found by its tag.
        try bench.must("moult publish \(place) -k time.key -q && moult check -q && moult apply -q")
        try bench.must("moult apply -q --create --store other --key root.pub \(place)")
        #expect(try bench.installed(in: "other") == "1.0.0")
    }

    @Test func `a version with build metadata has a valid tag`() throws {
        try bench.must(
            """
            sqlite3 food.db "CREATE TABLE food(id INTEGER PRIMARY KEY, release TEXT); INSERT INTO food VALUES(1, '1.0.0+b.2')"
            echo '{"manifest": 1, "product": "org.example.test", "version": "1.0.0+b.2", "sequence": 1,
              "databases": {"food": {"kind": "reference", "source": "food.db"}}}' > food.draft.json
            moult pack -q food.draft.json -o rel && moult publish \(place) rel/*.json -k a.key -q
            """)
        try bench.follow(place)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0+b.2")
        let tags = try bench.must("skopeo list-tags --tls-verify=false docker://\(registry.host)/team/food")
        #expect(tags.contains("\"1.0.0_b.2\"") && tags.contains("\"feed\""))
    }

    @Test func `a single release can be installed by its tag`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.publish("2.0.0", 2, to: place)
        try bench.must("moult apply -q --create --store other --key a.pub \(place):1.0.0")
        #expect(try bench.installed(in: "other") == "1.0.0")
    }

    @Test func `a release can be exported from a registry`() throws {
        try bench.publish("1.0.0", 1, to: place)
        try bench.follow(place)
        try bench.must("moult export 1.0.0 stick -q && moult apply -q --feed stick/feed.json")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a patch is published to a registry and used`() throws {
        try bench.release("1.0.0", 1, bytes: 400_000)
        try bench.must("moult publish \(place) rel/test-1.0.0.json -k a.key -q")
        try bench.follow(place)
        try bench.must("moult apply -q")
        try bench.must(
            """
            mkdir next; cp store/food.db next/food.db; chmod u+w next/food.db
            sqlite3 next/food.db "UPDATE food SET release = '2.0.0'"
            echo '{"manifest": 1, "product": "org.example.test", "version": "2.0.0", "sequence": 2,
              "databases": {"food": {"kind": "reference", "source": "next/food.db"}}}' > food.draft.json
            moult pack -q food.draft.json -o rel --delta-from rel/test-1.0.0.json
            """)
        try bench.must("moult publish \(place) rel/test-2.0.0.json -k a.key -q && moult publish \(place) --check -q")
        let requests = try registry.requests { try bench.must("moult apply -q") }
        #expect(try bench.installed() == "2.0.0")
        let bundle = try bench.must("sha256sum rel/test-2.0.0.tar.zst").prefix(64)
        #expect(!requests.contains { $0.path.hasSuffix(bundle) })
    }
}
