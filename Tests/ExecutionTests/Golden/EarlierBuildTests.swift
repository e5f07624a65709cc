import MoultFiles
import TestSupport
import Testing

/// The store of an earlier build, whose records have another format.
@Suite struct EarlierBuildTests {
    private let store: GoldenStore

    init() throws {
        store = try GoldenStore()
        try store.scratch.must(
            "sqlite3 store/pantry.db \"INSERT INTO food(name, mine) VALUES('late', 1)\"; sqlite3 store/user.db \"INSERT INTO note(text) VALUES('note')\""
        )
    }

    private func run(_ line: String) throws -> Shell.Ended { try store.scratch.run(line) }

    @Test func `commands that read still work`() throws {
        #expect(try run("moult status").output.contains("3.0.0"))
        #expect(try run("moult sql 'SELECT release FROM food.food'").output.contains("3"))
        #expect(try run("moult history").status == 0)
        #expect(try run("moult quarantine").status == 0)
    }
}
