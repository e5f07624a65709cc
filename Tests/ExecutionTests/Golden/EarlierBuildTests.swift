import MoultFiles
import TestSupport
import Testing

/// The store of an earlier build, whose records have another format.
@Suite struct EarlierBuildTests {
    private let store: GoldenStore
    private let golden = Golden()

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

    static let writing = [
        "apply RELEASE", "rollback", "recover", "recover --undo", "reset user --set-user-data-aside", "clean",
        "hold 9.0.0 --reason x",
    ]

    @Test(arguments: writing) func `commands that write change nothing`(verb: String) throws {
        // The lock's file is there from now on.
        _ = try run("moult clean")
        let before = try Tree(store.root)
        let ended = try run("moult \(verb.replacing("RELEASE", with: golden.release(3)))")
        #expect(ended.status == 3, "\(ended)")
        #expect(
            ended.errors.contains("is the store of an earlier build of moult: its records have another format"),
            "\(ended)")
        #expect(try Tree(store.root) == before)
    }

    @Test func `the advice starts a new store with every row`() throws {
        let ended = try run("moult apply \(golden.release(3))")
        let advice = try #require(ended.errors.split(separator: "apps write to: ").last).split(separator: "\n")[0]
        try store.scratch.must(String(advice).replacing("RELEASE", with: golden.release(3)))
        let new = "\(store.root).new"
        #expect(
            try store.scratch.must("sqlite3 \(new)/pantry.db 'SELECT group_concat(name) FROM food WHERE mine'")
                == "mine,late\n")
        #expect(
            try store.scratch.must("sqlite3 \(new)/user.db 'SELECT text FROM note; PRAGMA user_version'") == "note\n2\n"
        )
        #expect(try run("moult verify --store \(new)").status == 0)
        // The old store is as it was.
        #expect(try run("moult status").output.contains("3.0.0"))
    }
}
