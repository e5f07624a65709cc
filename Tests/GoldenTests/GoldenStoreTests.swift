import Moult
import MoultBasics
import MoultEngine
import MoultFiles
import MoultStore
import TestSupport
import Testing

/// Stores created by older versions of moult can still be read, recovered, updated and rolled back.
@Suite struct GoldenStoreTests {
    static let interrupted: [(name: String, ending: CrashRecovery.Result.Ending, found: [String])] = [
        ("interrupted-staging", .cleaned, GoldenStore.first),
        ("interrupted-decided", .finished, GoldenStore.second),
        ("interrupted-pointed", .finished, GoldenStore.second),
        ("interrupted-exchanged", .finished, GoldenStore.second),
        ("interrupted-replaced", .finished, GoldenStore.second),
        ("interrupted-undoing", .undone, GoldenStore.first),
    ]

    @Test(arguments: interrupted)
    func `a store in which an older version of moult was interrupted is recovered`(
        _ name: String, _ ending: CrashRecovery.Result.Ending, _ found: [String]
    ) throws {
        let golden = try GoldenStore(name)
        let orchestrator = try Orchestrator(root: golden.root, steps: .builtIn)
        #expect(try orchestrator.isUnfinished())
        #expect(try orchestrator.recover().map(\.ending) == [ending])
        #expect(try golden.found() == found)
        #expect(try Verifier(StoreSnapshot(golden.layout)).verify(deep: true).compactMap(\.finding) == [])
        #expect(try Files.list(golden.layout.transactions) == [])
        // After recovery, the release is installed or can be installed.
        _ = try orchestrator.update(UpdateRequest(manifest: Golden().release(2)))
        #expect(try golden.found() == GoldenStore.second)
        let entries = try History.read(golden.layout).entries
        #expect(entries.filter { $0.to.hasPrefix("2.0.0") && [.done, .finished].contains($0.outcome) }.count == 1)
    }

    @Test func `a store of an older version of moult is read`() throws {
        let golden = try GoldenStore("installed")
        let store = Store(at: golden.root)
        #expect(try Verifier(StoreSnapshot(golden.layout)).verify(deep: true).compactMap(\.finding) == [])
        #expect(try store.isCurrent(Golden().release(3)))
        let (entries, torn) = try History.read(golden.layout)
        #expect(torn == 0)
        #expect(entries.map(\.action) == ["update", "update", "reset user", "update"])
        #expect(entries.map(\.outcome) == [.done, .done, .done, .done])
        let connection = try store.connect()
        #expect(
            try connection.texts("SELECT release, (SELECT count(*) FROM pantry.food) FROM food.food") == [["3", "2"]])
        try connection.close()
        // Sets in quarantine are still listed.
        let sets = try QuarantineShelf(layout: golden.layout, settings: Settings.read(golden.layout)).sets()
        #expect(sets.compactMap(\.record?.database).sorted() == ["thumbs", "thumbs", "user"])
    }

    /// The older moult installed the generation to which the store is rolled back.
    @Test func `a store of an older version of moult is rolled back and updated again`() throws {
        let golden = try GoldenStore("installed")
        let store = Store(at: golden.root)
        try Shell.must(["sqlite3", "\(golden.root)/pantry.db", "INSERT INTO food VALUES(101, 'later', 1)"])
        try store.rollbackBlocking(reason: "test")
        #expect(try golden.found() == ["2", "shipped 2, mine, later", "shipped 2, mine", "2|", "image2"])
        _ = try Orchestrator(root: golden.root, steps: .builtIn).unholdAll()
        try store.updateBlocking(to: Golden().release(3))
        #expect(try golden.found() == ["3", "shipped 3, mine, later", "shipped 3, mine", "2|", "image3"])
    }
}
