import TestSupport
import Testing

/// A timer that finds nothing to do leaves no trace, however often it comes.
@Suite struct NothingToDoTests {
    private let world: World
    init() throws { world = try World() }

    private static let times = 100

    @Test
    func `a hundred times by manifest`() throws {
        try world.install(world.first)
        try provesSilent("moult apply -q rel/test-1.0.0.json")
    }

    @Test
    func `a hundred times by feed`() throws {
        try world.must(
            """
            moult keygen -q --no-password k
            moult publish -q public rel/test-1.0.0.json --key k.key
            moult init -q --product org.example.test --key k.pub --feed "$PWD/public/feed.json"
            moult apply -q
            """)
        try provesSilent("moult apply -q --wait 60")
    }

    /// Compared is everything that `ls` and `stat` could tell: content, inodes, modes, times of change.
    private func provesSilent(_ line: String) throws {
        let tree = try world.tree
        let run = try world.run("for ((i = 0; i < \(Self.times); i++)); do \(line) || exit 9; done; echo $i")
        #expect(run == (0, "\(Self.times)\n", ""))
        #expect(try world.tree == tree)
    }
}
