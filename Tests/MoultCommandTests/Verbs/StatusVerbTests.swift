import Moult
import MoultBasics
import MoultLibc
import TestSupport
import Testing

@testable import MoultCommand

/// `moult status` reports the users of the store.
@Suite struct StatusVerbTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    private func status() throws -> JSON { try #require(try world.json("moult status --json").first) }

    @Test func `status names readers of older generations`() throws {
        try world.install(world.first)
        let lease = try Store(at: world.store).lease()
        try world.must("moult apply -q rel/test-2.0.0.json")
        let generation = lease.generation
        let text = try world.must("moult status")
        #expect(text.contains("\npid \(getpid()) ("))
        #expect(text.contains(") still reads generation \(generation)\n"))
        let laggards = try status()["laggards"]?.array
        #expect(laggards?.compactMap { $0["pid"]?.integer } == [Int64(getpid())])
        #expect(laggards?.compactMap { $0["generation"]?.string } == [generation])
        // Without a configured wait for readers, no reader counts as late.
        #expect(try world.run("moult status --nagios").status == 0)
        try world.must("sed -i '1a \"waitForReaders\": 1,' store/moult.json")
        #expect(try world.run("moult status --nagios").status == 1)
        withExtendedLifetime(lease) {}
    }
}
