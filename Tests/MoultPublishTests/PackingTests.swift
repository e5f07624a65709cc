import MoultFiles
import MoultPublish
import MoultSQLite
import TestSupport
import Testing

/// A large database that is already compact is written only once, and has the same bytes in each build.
@Suite struct PackingTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let sql: String
        let layout: BuildReport.Layout
    }

    private static let table = "CREATE TABLE food(pk INTEGER PRIMARY KEY, name TEXT, note TEXT);"
    private static let rows = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
        INSERT INTO food SELECT i, 'food ' || (i * 7919 % 40000), printf('%.*c', 200 + i % 50, 'x') FROM n;
        """
    private static let index = "CREATE INDEX food_name ON food(name);"

    private static let cases = [
        Case(testDescription: "rows, then an index", sql: "\(table) \(rows) \(index)", layout: .asWritten),
        Case(
            testDescription: "a script in WAL mode", sql: "PRAGMA journal_mode = WAL; \(table) \(rows)",
            layout: .asWritten),
        Case(
            testDescription: "an index, then rows in a different order",
            sql: "\(table) CREATE INDEX i ON food(name, note); \(rows)", layout: .vacuumed
        ),
        Case(
            testDescription: "a row is removed", sql: "\(table) \(rows) DELETE FROM food WHERE pk = 7;",
            layout: .vacuumed),
        Case(
            testDescription: "a row is changed", sql: "\(table) \(rows) UPDATE food SET name = 'x' WHERE pk = 7;",
            layout: .vacuumed),
        Case(
            testDescription: "a row is replaced",
            sql: "\(table) \(rows) INSERT OR REPLACE INTO food VALUES (7, 'x', 'y');",
            layout: .vacuumed),
        Case(
            testDescription: "a trigger removes rows",
            sql: """
                \(table) CREATE TRIGGER t AFTER INSERT ON food WHEN new.pk = 9 BEGIN DELETE FROM food WHERE pk = 7; END;
                \(rows)
                """, layout: .vacuumed),
        Case(
            testDescription: "a table is dropped", sql: "CREATE TABLE t(a); \(table) \(rows) DROP TABLE t;",
            layout: .vacuumed),
        Case(
            testDescription: "a page size set after the rows", sql: "\(table) \(rows) PRAGMA page_size = 8192;",
            layout: .vacuumed),
        Case(testDescription: "small", sql: "\(table) INSERT INTO food VALUES (1, 'a', 'b');", layout: .vacuumed),
    ]

    @Test(.tags(.sampled), arguments: cases.sampled(5)) func `a compact database is written only once`(_ it: Case)
        throws
    {
        let scratch = try Scratch()
        try scratch.file("s.sql", it.sql)
        let reports = try ["one.db", "two.db"].map {
            try DatabaseBuilder().build(script: scratch.path("s.sql"), output: scratch.path($0))
        }
        #expect(reports.map(\.layout) == [it.layout, it.layout])
        #expect(try scratch.bytes("one.db") == scratch.bytes("two.db"))
        #expect(try Files.list(scratch.path) == ["one.db", "s.sql", "two.db"])
        // The database has the same content as with the shell, is sound, and is as small as after VACUUM, except for
        // the ends of pages.
        try Shell.must(["sh", "-ec", "sqlite3 shell.db < s.sql && sqlite3 shell.db VACUUM"], in: scratch.path)
        for database in ["one.db", "shell.db"] {
            #expect(try Shell.must(["sqlite3", database, "PRAGMA integrity_check"], in: scratch.path) == "ok\n")
        }
        let dumps = try ["one.db", "shell.db"].map {
            try Shell.must(["sh", "-ec", "sqlite3 \($0) .dump | sha256sum"], in: scratch.path)
        }
        #expect(dumps[0] == dumps[1])
        let (ours, vacuumed) = (try scratch.bytes("one.db").count, try scratch.bytes("shell.db").count)
        #expect(ours <= vacuumed + vacuumed / 50)
        let header = try Connection(path: scratch.path("one.db"), access: .immutable).header()
        #expect(!header.isWAL)
    }
}
