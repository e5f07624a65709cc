import MoultBasics
import TestSupport
import Testing

/// SQLite treats a table as a part of a virtual table if the name of the table is that of the virtual table with an
/// ending such as `_content`, even if an app created the table for another purpose.
@Suite struct PartNamesTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    /// A virtual table, and an app's table that SQLite treats as a part of the virtual table.
    struct Case: CustomTestStringConvertible {
        let virtual: String
        let table: String
        var testDescription: String { "\(table) \(virtual)" }
    }

    private static let cases = [
        Case(virtual: "docs USING fts5(body, content='docs_content')", table: "docs_content"),
        Case(virtual: "docs USING fts5(body, content=\"DOCS_CONTENT\", content_rowid=id)", table: "docs_content"),
        Case(virtual: "docs USING fts4(body, content='docs_content')", table: "docs_content"),
        Case(virtual: "docs USING fts5(body, content='')", table: "docs_content"),
        Case(virtual: "docs USING fts3(body)", table: "Docs_Stat"),
    ]

    private static func schema(_ one: Case) -> String {
        """
        CREATE TABLE \(one.table)(id INTEGER PRIMARY KEY, body TEXT, own INTEGER DEFAULT 0);
        CREATE VIRTUAL TABLE \(one.virtual);
        """
    }

    @Test(arguments: cases) func `the app's rows in a table named like a part of a virtual table are kept`(one: Case)
        throws
    {
        try shop.pack("1.0.0", [.shared(Self.schema(one))])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO \(one.table) VALUES(10, 'my own document', 1)")
        try shop.pack("2.0.0", [.shared(Self.schema(one) + "CREATE TABLE new(x);")])
        let plan = try shop.moult("plan", shop.manifest("2.0.0"))
        #expect(plan.output.contains("1 row of \(one.table) not carried over, kept in quarantine"), "\(plan)")
        try shop.install("2.0.0")
        #expect(try shop.onlyKept("app").rows(one.table) == 1)
    }

    @Test(arguments: cases)
    func `preserved rows of a table named like a part of a virtual table are carried over`(one: Case) throws {
        let table = "CREATE TABLE \(one.table)(id INTEGER PRIMARY KEY, body TEXT, own INTEGER DEFAULT 0);"
        try shop.pack("1.0.0", [.shared(table, [["table": .string(one.table)]])])
        try shop.install("1.0.0")
        try shop.sql(
            "app.db", "INSERT INTO \(one.table) VALUES(10, 'my own document', 1); CREATE VIRTUAL TABLE \(one.virtual)")
        try shop.pack("2.0.0", [.shared(table + "CREATE TABLE new(x);", [["table": .string(one.table)]])])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT * FROM \(one.table)") == "10|my own document|1\n")
        // The virtual table is not carried over, so the old database is kept.
        #expect(try shop.kept("app").count == 1)
    }

    @Test func `an undo of a replaced file keeps rows written to a table named like a part of a virtual table`() throws
    {
        let (old, new) = (shop.scratch.path("old.db"), shop.scratch.path("new.db"))
        try Shop.sql(old, Self.schema(Self.cases[0]))
        try Shop.sql(new, Self.schema(Self.cases[0]) + "INSERT INTO docs_content VALUES(2, 'shipped', 0)")
        try Shell.must([Shop.command(), "replace", old, new])
        try Shop.sql(old, "INSERT INTO docs_content VALUES(10, 'my own document', 1)")
        #expect(try Shell.must([Shop.command(), "replace", "--undo", old]).contains("is also kept"))
    }

    @Test
    func `an update keeps the old database if the app has created a full-text index over a shipped table`() throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, text TEXT); INSERT INTO item VALUES(1, 'pea soup');"
        try shop.pack("1.0.0", [.shared(schema)])
        try shop.install("1.0.0")
        try shop.sql("app.db", "CREATE VIRTUAL TABLE mine USING fts5(text, content='item', content_rowid='id')")
        try shop.pack("2.0.0", [.shared(schema + "CREATE TABLE new(x);")])
        try shop.install("2.0.0")
        #expect(try shop.kept("app").count == 1)
    }

    @Test func `a migration that drops the app's index keeps a copy, and one that drops the app's rows is refused`()
        throws
    {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, text TEXT); CREATE VIRTUAL TABLE find USING fts3(text);"
        let numbered = { (number: Int) in schema + "PRAGMA user_version = \(number);" }
        try shop.pack("1.0.0", [.user(numbered(1))])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "CREATE VIRTUAL TABLE mine USING fts5(text, content='item', content_rowid='id')")
        try shop.pack("2.0.0", [.user(numbered(2), ["2.sql": "DROP TABLE IF EXISTS mine; PRAGMA user_version = 2;"])])
        try shop.install("2.0.0")
        #expect(try shop.kept("diary").count == 1)
        try shop.sql("diary.db", "CREATE TABLE find_stat(q TEXT, n INT); INSERT INTO find_stat VALUES('mine', 7)")
        let without = "CREATE TABLE item(id INTEGER PRIMARY KEY, text TEXT); PRAGMA user_version = 3;"
        try shop.pack(
            "3.0.0",
            [
                .user(
                    without,
                    [
                        "2.sql": "DROP TABLE IF EXISTS mine; PRAGMA user_version = 2;",
                        "3.sql": "DROP TABLE find; PRAGMA user_version = 3;",
                    ])
            ])
        let ended = try shop.moult("apply", shop.manifest("3.0.0"))
        #expect(ended.status == 3)
        #expect(ended.errors.contains("find_stat had 1 row"), "\(ended)")
        #expect(try shop.read("diary.db", "SELECT * FROM find_stat") == "mine|7\n")
    }

    @Test(arguments: cases)
    func `salvage copies the rows of a table named like a part of a virtual table`(one: Case) throws {
        try shop.pack("1.0.0", [.user(Self.schema(one) + "PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO \(one.table) VALUES(10, 'my own document', 1)")
        try shop.addInvalidJournal("diary.db")
        let ended = try shop.moult("reset", "diary", "--set-user-data-aside")
        #expect(ended.status == 0, "\(ended)")
        let salvaged = "\(try shop.onlyKept("diary").directory)/salvaged.db"
        #expect(try Shop.read(salvaged, "SELECT * FROM \(one.table)") == "10|my own document|1\n")
    }
}
