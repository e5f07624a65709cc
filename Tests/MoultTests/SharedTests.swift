import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// Shared databases, which the publisher ships and to which the app writes.
@Suite struct SharedTests {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store
    var path: String { scratch.path("store/pantry.db") }

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: scratch.path("store"))
    }

    static let schema =
        "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT NOT NULL, editable INTEGER NOT NULL DEFAULT 0);"

    private func release(
        _ version: String, _ sequence: Int, _ sql: String, conflict: String = "keep-user",
        more: [JSON.Member] = []
    ) throws -> String {
        let members: [JSON.Member] = [
            .init(
                "preserve",
                [
                    .object(
                        [
                            .init("table", "food"), .init("where", "editable = 1"),
                            .init("onConflict", .string(conflict)),
                        ] + more)
                ])
        ]
        return try maker.make(version, sequence: sequence, [.shared("pantry", sql, more: members)])
    }

    private func sqlite(_ sql: String) throws -> String { try Shell.must(["sqlite3", path, sql]) }

    @Test(arguments: ["delete", "wal"])
    func `new content is installed and preserved rows stay`(mode: String) throws {
        try store.updateBlocking(
            to: release("1.0.0", 1, Self.schema + "INSERT INTO food VALUES(1,'egg',0),(2,'milk',0);"))
        _ = try sqlite(
            "PRAGMA journal_mode=\(mode); INSERT INTO food VALUES(100,'mine',1); UPDATE food SET name='hacked' WHERE id=1"
        )
        let two = try release("2.0.0", 2, Self.schema + "INSERT INTO food VALUES(1,'egg',0),(3,'rice',0);")
        #expect(try store.isCurrent(two) == false)
        try store.updateBlocking(to: two)
        #expect(try sqlite("SELECT id, name FROM food ORDER BY id") == "1|egg\n3|rice\n100|mine\n")
        #expect(try sqlite("SELECT release FROM moult_release") == "2.0.0\n")
        #expect(try sqlite("PRAGMA journal_mode") == "\(mode)\n")
        #expect(try sqlite("PRAGMA integrity_check") == "ok\n")
        #expect(try store.isCurrent(two))
        // A rollback restores the kept content, and carries the user's rows over again.
        try store.rollbackBlocking(reason: "test")
        #expect(try sqlite("SELECT id, name FROM food ORDER BY id") == "1|egg\n2|milk\n100|mine\n")
    }

    @Test(arguments: [("keep-user", "7|mine\n"), ("keep-new", "7|shipped\n")])
    func `conflicts are resolved as the manifest specifies`(policy: String, rows: String) throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.schema))
        _ = try sqlite("INSERT INTO food VALUES(7,'mine',1)")
        try store.updateBlocking(
            to: release("2.0.0", 2, Self.schema + "INSERT INTO food VALUES(7,'shipped',0);", conflict: policy))
        #expect(try sqlite("SELECT id, name FROM food") == rows)
    }

    @Test func `an update is refused because of a conflict if the manifest specifies fail`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.schema))
        _ = try sqlite("INSERT INTO food VALUES(7,'mine',1)")
        let before = try Tree(scratch.path("store"), skipping: [".moult/history.jsonl", ".moult/transactions"])
        let two = try release("2.0.0", 2, Self.schema + "INSERT INTO food VALUES(7,'shipped',0);", conflict: "fail")
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: two) }
        #expect(error?.outcome == .refused)
        #expect(
            error?.why
                == "cannot carry over a row of table food: the new content has a row with the same key and different values"
        )
        #expect(try sqlite("SELECT id, name FROM food") == "7|mine\n")
        #expect(
            try Tree(scratch.path("store"), skipping: [".moult/history.jsonl", ".moult/transactions"]).lines.filter {
                !$0.contains("pantry.db")
            } == before.lines.filter { !$0.contains("pantry.db") })
    }

    @Test func `a row that no longer fits blocks the update, or is rejected with onReject table`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.schema))
        _ = try sqlite("INSERT INTO food VALUES(7,'x',1),(8,'long enough',1)")
        let strict =
            "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT CHECK(length(name) > 3), editable INTEGER, unit TEXT DEFAULT 'g');"
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: release("2.0.0", 2, strict)) }
        #expect(
            error?.why
                == "a row of table food does not fit into the new table: CHECK constraint failed: length(name) > 3")
        try store.updateBlocking(to: release("2.0.1", 3, strict, more: [.init("onReject", "table")]))
        #expect(try sqlite("SELECT id, name, unit FROM food") == "8|long enough|g\n")
        #expect(
            try sqlite("SELECT \"table\", row FROM moult_rejected") == "food|{\"id\":7,\"name\":\"x\",\"editable\":1}\n"
        )
    }

    @Test func `a process with an open connection gets the new content without an error`() throws {
        try store.updateBlocking(
            to: release("1.0.0", 1, Self.schema + "INSERT INTO food VALUES(1,'one',0),(2,'one',0);"))
        _ = try sqlite("PRAGMA journal_mode=wal")
        let stop = scratch.path("stop")
        let ready = scratch.path("ready")
        let reader = try Background([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], timeout=5)
            seen = []
            while not os.path.exists(sys.argv[2]):
                names = set(r[0] for r in c.execute("select distinct name from food where editable = 0"))
                assert len(names) == 1, names
                if not seen or seen[-1] != names: seen.append(names)
                open(sys.argv[3], "w").close()
            print(" ".join(next(iter(s)) for s in seen))
            """, path, stop, ready,
        ])
        try reader.wait { try Files.facts(ready) != nil }
        let two = try release("2.0.0", 2, Self.schema + "INSERT INTO food VALUES(1,'two',0),(2,'two',0);")
        try store.updateBlocking(to: two)
        try Files.remove(ready)
        try reader.wait { try Files.facts(ready) != nil }
        try Files.writeNew([], to: stop)
        #expect(try reader.end() == "one two\n")
    }
}
