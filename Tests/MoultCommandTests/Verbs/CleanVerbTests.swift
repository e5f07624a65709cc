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

    @Test func `clean keeps generations in use`() throws {
        try grow()
        try world.must("moult rollback -q; moult unhold -q")
        let lease = try Store(at: world.store).lease()
        try world.must("moult apply -q rel/test-2.0.0.json")
        let text = try world.must("moult clean --keep 1")
        #expect(text.hasPrefix("= generation \(try world.generation(world.first)) stays: in use by pid "))
        withExtendedLifetime(lease) {}
    }

    /// Allows generations of any age to be removed.
    private func grow() throws { try world.must("sed -i 's/\"keep\"/\"minimumAge\": 0, &/' store/moult.json") }
}
