import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A feed with several locations: of different kinds, in groups, failing and busy.
@Suite(.tags(.thorough), .serialized) struct MirrorTests {
    private let bench: RegistryBench
    private let directory: String

    init() throws {
        bench = try RegistryBench()
        directory = bench.scratch.path("public")
        try bench.publish("1.0.0", 1, to: directory)
    }

    private func follow(_ url: String, mirrors: JSON) throws {
        try bench.must("mkdir -p store; chmod -R u+w store; rm -rf store")
        try bench.follow(url)
        try bench.set("mirrors", mirrors)
    }

    @Test(
        .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"),
        arguments: ["registry", "web", "directory"])
    func `a mirror of another kind is used if the other mirrors fail`(working: String) throws {
        let registry = try Registry()
        try bench.must("moult publish \(registry.address("team/food")) rel/test-1.0.0.json -k a.key -q")
        let server = try WebServer(directory)
        let places = [
            "registry": registry.address("team/food"), "web": server.url("feed.json"),
            "directory": "\(directory)/feed.json",
        ]
        let dead = try Port.free()
        let failing = [
            "registry": "oci+http://127.0.0.1:\(dead)/team/food", "web": "http://127.0.0.1:\(dead)/feed.json",
            "directory": "/nowhere/feed.json",
        ]
        let others = failing.filter { $0.key != working }.map { JSON.string($0.value) }
        try follow(try #require(failing[working]), mirrors: .array(others + [.string(try #require(places[working]))]))
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
    }

    /// The store gets the feed from one mirror. That mirror has lost the bundle, which the store gets from a mirror of
    /// a different kind.
    @Test(.enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
    func `a file that one mirror has lost is fetched from the next mirror`() throws {
        let registry = try Registry()
        let place = registry.address("team/food")
        let server = try WebServer(directory)
        let bundle = try bench.must("sha256sum rel/test-1.0.0.tar.zst").prefix(64)
        // Both mirrors have the same feed.
        let files = ["feed.json", "feed.json.minisig", "test-1.0.0.json"].map { "public/\($0)" }
        try bench.put(files, to: registry, "team/food", tag: "feed")
        try follow(place, mirrors: [.string(server.url("feed.json"))])
        let requests = try registry.requests { try bench.must("moult apply -q") }
        #expect(requests.contains { $0.path.hasSuffix(bundle) && $0.status == 404 })
        #expect(try bench.installed() == "1.0.0")
        // Then the mirrors swap their roles.
        try bench.must("moult publish \(registry.address("whole/food")) rel/test-1.0.0.json -k a.key -q")
        try bench.must("rm public/test-1.0.0.tar.zst")
        try follow(server.url("feed.json"), mirrors: [.string(registry.address("whole/food"))])
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a mirror that is busy after its pause is abandoned for the next one`() throws {
        let busy = try ScriptedServer(directory, .retryAfter("1", times: 1000))
        let other = try ScriptedServer(directory)
        try follow(busy.url("feed.json"), mirrors: [.string(other.url("feed.json"))])
        let begun = ContinuousClock.now
        try bench.must("moult check -q", status: 2)
        #expect(try busy.requests().count == 4)
        #expect(ContinuousClock.now - begun >= .seconds(3))
        #expect(try other.requests().contains { $0.path == "/feed.json" })
    }

    @Test func `a mirror that asks for a long pause is abandoned at once`() throws {
        let busy = try ScriptedServer(directory, .retryAfter("100000", times: 1000))
        let other = try ScriptedServer(directory)
        try follow(busy.url("feed.json"), mirrors: [.string(other.url("feed.json"))])
        try bench.must("moult check -q", status: 2)
        #expect(try busy.requests().count == 1)
        #expect(try other.requests().contains { $0.path == "/feed.json" })
    }

    // MARK: groups

    /// Counts how many stores ask each of the servers first.
    private func first(of servers: [ScriptedServer], stores: Int) throws -> [Int] {
        var counts = servers.map { _ in 0 }
        for store in 0..<stores {
            var chosen: Set<Int> = []
            // Some stores ask twice.
            for _ in 0..<(store < 4 ? 2 : 1) {
                let before = try servers.map { try $0.requests().count }
                try bench.must("MOULT_MACHINE_ID=machine-\(store) moult check -q", status: 2)
                let asked = try servers.indices.filter { try servers[$0].requests().count > before[$0] }
                #expect(asked.count == 1)
                chosen.formUnion(asked)
            }
            // A store always starts with the same mirror.
            #expect(chosen.count == 1)
            for index in chosen { counts[index] += 1 }
        }
        return counts
    }

    @Test func `stores are spread over the mirrors of a group`() throws {
        let servers = try (0..<3).map { _ in try ScriptedServer(directory) }
        let last = try ScriptedServer(directory)
        let urls = servers.map { JSON.string($0.url("feed.json")) }
        // The group contains the URL itself, so it has three mirrors.
        // That group is tried first, although another one is listed before it.
        try follow(servers[0].url("feed.json"), mirrors: [.string(last.url("feed.json")), .array(urls)])
        let counts = try first(of: servers, stores: 40)
        // The chance that 40 stores all skip one of three servers is one in three million.
        #expect(counts.allSatisfy { $0 > 0 }, "\(counts)")
        #expect(try last.requests() == [])
    }

    @Test func `the next mirror of the group is used, and then the next group`() throws {
        let dead = try (0..<2).map { _ in "http://127.0.0.1:\(try Port.free())/feed.json" }
        let alive = try ScriptedServer(directory)
        let last = try ScriptedServer(directory)
        let group = (dead + [alive.url("feed.json")]).map { JSON.string($0) }
        try follow(dead[0], mirrors: [.array(group), .string(last.url("feed.json"))])
        try bench.must("moult check -q", status: 2)
        #expect(try !alive.requests().isEmpty && last.requests().isEmpty)
        try follow(dead[0], mirrors: [.array(dead.map { .string($0) }), .string(last.url("feed.json"))])
        try bench.must("moult check -q", status: 2)
        #expect(try !last.requests().isEmpty)
    }
}
