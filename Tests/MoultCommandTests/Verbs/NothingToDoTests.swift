import TestSupport
import Testing

/// An `apply` with nothing to do changes nothing in the store, however often a timer runs it.
@Suite struct NothingToDoTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    private static let times = 100

    @Test
    func `applying an installed release a hundred times changes nothing`() throws {
        try world.install(world.first)
        try expectNoChange("moult apply -q rel/test-1.0.0.json")
    }

    @Test
    func `applying an unchanged feed a hundred times changes nothing`() throws {
        try world.must(
            """
            moult keygen -q --no-password k
            moult publish -q public rel/test-1.0.0.json --key k.key
            moult init -q --product org.example.test --key k.pub --feed "$PWD/public/feed.json"
            moult apply -q
            """)
        try expectNoChange("moult apply -q --wait 60")
    }

    /// Compares everything that `ls` and `stat` show: content, inodes, modes, ctimes.
    private func expectNoChange(_ line: String) throws {
        let tree = try world.tree
        let run = try world.run("for ((i = 0; i < \(Self.times); i++)); do \(line) || exit 9; done; echo $i")
        #expect(run == (0, "\(Self.times)\n", ""))
        #expect(try world.tree == tree)
    }
}
