import MoultBasics
import MoultFiles
import TestSupport
import Testing

@testable import MoultPublish

/// With the option `from`, the built database keeps the page layout of the previous release, and has the rows that the
/// script makes.
@Suite struct EvolutionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let schema: String
        let old: String
        let new: String
        let changes: RowChanges

        init(_ name: String, _ schema: String, _ old: String, _ new: String, _ changes: RowChanges) {
            (testDescription, self.schema, self.old, self.new, self.changes) = (name, schema, old, new, changes)
        }
    }

    static func counts(added: Int = 0, changed: Int = 0, removed: Int = 0, unchanged: Int = 0) -> RowChanges {
        var changes = RowChanges()
        (changes.added, changes.changed) = (added, changed)
        (changes.removed, changes.unchanged) = (removed, unchanged)
        return changes
    }

    @Test(arguments: EvolutionCases.all) func `a build from an older database has the rows of the script`(_ it: Case)
        throws
    {
        let scratch = try Scratch()
        try scratch.file("old.sql", it.schema + it.old)
        try scratch.file("new.sql", it.schema + it.new)
        _ = try DatabaseBuilder().build(script: scratch.path("old.sql"), output: scratch.path("old.db"))
        _ = try DatabaseBuilder().build(script: scratch.path("new.sql"), output: scratch.path("fresh.db"))
        let before = try scratch.bytes("old.db")
        var options = BuildOptions()
        options.from = scratch.path("old.db")
        let report = try DatabaseBuilder(options).build(
            script: scratch.path("new.sql"), output: scratch.path("made.db"))
        #expect(report.layout == .kept(it.changes))
        #expect(try content(scratch, "made.db") == content(scratch, "fresh.db"))
        #expect(try Shell.must(["sqlite3", scratch.path("made.db"), "PRAGMA integrity_check"]) == "ok\n")
        #expect(try scratch.bytes("old.db") == before)
        #expect(try Files.list(scratch.path) == ["fresh.db", "made.db", "new.sql", "old.db", "old.sql"])
    }

    /// Returns the schema and rows as SQL, sorted, because the order of rows without a key may differ.
    private func content(_ scratch: Scratch, _ name: String) throws -> [Substring] {
        try Shell.must(["sqlite3", scratch.path(name), ".dump", "PRAGMA user_version"]).split(separator: "\n").sorted()
    }

    @Test func `a build from an older database with the same rows has the same bytes`() throws {
        let scratch = try Scratch()
        try scratch.file(
            "a.sql", "CREATE TABLE t(a PRIMARY KEY, b);INSERT INTO t VALUES(1,2),(3,4);PRAGMA user_version=4;")
        _ = try DatabaseBuilder().build(script: scratch.path("a.sql"), output: scratch.path("a.db"))
        let before = try scratch.bytes("a.db")
        var options = BuildOptions()
        options.from = scratch.path("a.db")
        _ = try DatabaseBuilder(options).build(script: scratch.path("a.sql"), output: scratch.path("a.db"))
        #expect(try scratch.bytes("a.db") == before)
    }

    @Test func `a build from an older database changes few pages`() throws {
        let scratch = try Scratch()
        func script(_ step: Int) -> String {
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, n INT);
            WITH RECURSIVE r(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM r WHERE i < 50000)
            INSERT INTO t SELECT i, 'name of ' || i, CASE WHEN i BETWEEN 1000 AND 1400 THEN \(step) ELSE i END FROM r
                WHERE i NOT BETWEEN 40000 AND 40000 + 100 * \(step);
            CREATE INDEX i ON t(name);
            """
        }
        try scratch.file("1.sql", script(1))
        try scratch.file("2.sql", script(2))
        _ = try DatabaseBuilder().build(script: scratch.path("1.sql"), output: scratch.path("1.db"))
        _ = try DatabaseBuilder().build(script: scratch.path("2.sql"), output: scratch.path("fresh.db"))
        var options = BuildOptions()
        options.from = scratch.path("1.db")
        _ = try DatabaseBuilder(options).build(script: scratch.path("2.sql"), output: scratch.path("2.db"))
        let old = try scratch.bytes("1.db")
        func changedPages(_ name: String) throws -> Int {
            let new = try scratch.bytes(name)
            return stride(from: 0, to: new.count, by: 4096).count { start in
                start >= old.count || old[start..<start + 4096] != new[start..<start + 4096]
            }
        }
        let pages = old.count / 4096
        // Of 50,000 rows, 401 were changed and 100 were removed, which changes about ten pages of the table and a few
        // pages of the index.
        #expect(try changedPages("2.db") * 20 < pages)
        #expect(try changedPages("fresh.db") * 5 > pages)
    }

    @Test(arguments: [
        ("CREATE TABLE t(a, b);", "the definition of t differs"),
        ("CREATE TABLE t(a); CREATE INDEX i ON t(a);", "the definition of i differs"),
        ("PRAGMA page_size = 8192; CREATE TABLE t(a);", "page_size was 4096 and is now 8192"),
        ("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(a);", "the text encoding differs"),
    ])
    func `a build with a different schema starts from scratch`(_ script: String, _ why: String) throws {
        let scratch = try Scratch()
        try scratch.file("old.sql", "CREATE TABLE t(a);")
        try scratch.file("new.sql", script)
        _ = try DatabaseBuilder().build(script: scratch.path("old.sql"), output: scratch.path("old.db"))
        _ = try DatabaseBuilder().build(script: scratch.path("new.sql"), output: scratch.path("fresh.db"))
        var options = BuildOptions()
        options.from = scratch.path("old.db")
        var warnings: [String] = []
        options.warn = { warnings.append($0.description) }
        let report = try DatabaseBuilder(options).build(
            script: scratch.path("new.sql"), output: scratch.path("made.db"))
        #expect(report.layout == .repacked(because: why))
        #expect(warnings == ["the layout of \(scratch.path("old.db")) is not kept: \(why)"])
        #expect(try scratch.bytes("made.db") == scratch.bytes("fresh.db"))
    }

    @Test func `build --from accepts only a database that build made`() throws {
        let scratch = try Scratch()
        try scratch.file("a.sql", "CREATE TABLE t(a);")
        func refusal(_ name: String) throws -> String? {
            var options = BuildOptions()
            options.from = scratch.path(name)
            let error = #expect(throws: MoultError.self) {
                try DatabaseBuilder(options).build(script: scratch.path("a.sql"), output: scratch.path("a.db"))
            }
            #expect(try Files.facts(scratch.path("a.db")) == nil)
            return error?.why
        }
        #expect(try refusal("none.db") == "no such file")
        try Shell.must(["sqlite3", scratch.path("wal.db"), "PRAGMA journal_mode=WAL; CREATE TABLE t(a);"])
        #expect(try refusal("wal.db") == "it is in WAL mode")
        try scratch.file("hot.db", scratch.bytes("wal.db"))
        try scratch.file("hot.db-journal", "x")
        #expect(try refusal("hot.db") == "\(scratch.path("hot.db"))-journal is next to the file")
        // The journal is next to the file itself.
        try Shell.must(["ln", "-s", scratch.path("hot.db"), scratch.path("link.db")])
        #expect(try refusal("link.db") == "\(scratch.path("hot.db"))-journal is next to the file")
        try scratch.file(
            "text.db", "not a database,  but long enough to be looked at: " + String(repeating: "x", count: 99))
        #expect(try refusal("text.db") == "it does not start with the header of a SQLite database")
    }
}
