import Moult
import MoultBasics
import TestSupport
import Testing

@Suite struct CleanVerbTests {
    private let world: VerbWorld
    init() throws {
        world = try VerbWorld()
        try world.install(world.first, world.second)
    }

    @Test func `clean keeps recent generations`() throws {
        #expect(
            try world.must("moult clean --keep 1") == """
                = generation \(world.generation(world.first)) stays: in service less than 60 s ago
                nothing to do: no generation can be removed

                """)
        #expect(try world.must("moult clean") == "nothing to do: the store has no generation beyond the limit\n")
    }

    @Test func `clean keeps generations in use`() throws {
        try grow()
        try world.must("moult rollback -q; moult unhold -q")
        let lease = try Store(at: world.store).lease()
        try world.must("moult apply -q rel/test-2.0.0.json")
        let text = try world.must("moult clean --keep 1")
        #expect(text.hasPrefix("= generation \(try world.generation(world.first)) stays: in use by pid "))
        withExtendedLifetime(lease) {}
    }

    @Test func `clean removes other generations`() throws {
        try grow()
        let old = try world.generation(world.first)
        let tree = try world.tree
        let dry = try world.must("moult clean --keep 1 --dry-run")
        #expect(dry.hasPrefix("- generation \(old) would be removed\n"))
        #expect(dry.hasSuffix(" KiB would be freed\n"))
        #expect(try world.tree == tree)
        #expect(
            try world.must("moult clean --keep 1")
                == dry.replacing("would be removed", with: "was removed")
                .replacing("would be freed", with: "freed"))
        #expect(try !world.must("moult status").contains(old))
        let json = try #require(try world.json("moult clean --json").first)
        #expect(json["removed"]?.array == [])
        #expect(json["freed"]?.integer == 0)
    }

    /// On request, sets in quarantine are removed by age. User data is removed only with another option.
    @Test func `clean removes old sets from quarantine on request`() throws {
        let world = try VerbWorld()
        _ = try BrokenStore.release(in: world.scratch.path("rel"))
        try world.install("rel/test-1.0.0.json")
        try world.must("moult reset thumbs; moult reset user --set-user-data-aside")
        func sets() throws -> [String] {
            try world.must("ls store/.moult/quarantine").split(separator: "\n").map {
                String($0.split(separator: "-").last ?? "")
            }.sorted()
        }
        #expect(try sets() == ["thumbs", "user"])
        try world.must("moult clean; moult clean --quarantine-older-than 1")
        #expect(try sets() == ["thumbs", "user"])
        let tree = try world.tree
        let dry = try world.must("moult clean --quarantine-older-than 0 --dry-run")
        #expect(dry.contains("-thumbs would be removed\n"))
        #expect(dry.contains("-user stays: it contains user data\n"))
        #expect(try world.tree == tree)
        try world.must("moult clean --quarantine-older-than 0")
        #expect(try sets() == ["user"])
        // With an earlier date in its record, the set is old enough.
        try world.must("sed -i 's/\"time\": \"2[0-9]*/\"time\": \"2001/' store/.moult/quarantine/*-user/set.json")
        try world.must("moult clean --quarantine-older-than 1000 --including-user-data")
        #expect(try sets().isEmpty)
        #expect(try world.run("moult clean --including-user-data").status == 64)
    }

    /// Allows generations of any age to be removed.
    private func grow() throws { try world.must("sed -i 's/\"keep\"/\"minimumAge\": 0, &/' store/moult.json") }
}
