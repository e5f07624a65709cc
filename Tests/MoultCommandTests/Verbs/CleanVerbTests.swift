import Moult
import MoultBasics
import Testing

@Suite struct CleanVerbTests {
    private let world: World
    init() throws {
        world = try World()
        try world.install(world.first, world.second)
    }

    @Test func whatIsYoungStays() throws {
        #expect(
            try world.must("moult clean --keep 1") == """
                = generation \(world.generation(world.first)) stays: younger than 60 s
                nothing to do: no generation can be removed

                """)
        #expect(try world.must("moult clean") == "nothing to do: no generation is too many\n")
    }

    @Test func whatIsReadStays() throws {
        try grow()
        try world.must("moult rollback -q; moult unhold -q")
        let lease = try Store(at: world.store).lease()
        try world.must("moult apply -q rel/test-2.0.0.json")
        let text = try world.must("moult clean --keep 1")
        #expect(text.hasPrefix("= generation \(try world.generation(world.first)) stays: in use by pid "))
        withExtendedLifetime(lease) {}
    }

    @Test func theRestGoes() throws {
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

    /// Lets generations be collected at any age.
    private func grow() throws { try world.must("sed -i 's/\"keep\"/\"minimumAge\": 0, &/' store/moult.json") }
}
