import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Rows that an update or a rollback carries over, where more than one transfer of rows matters. `RowTransferTests` has the rules.
@Suite(.tags(.thorough)) struct CarriedValuesTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static func own(_ table: String = "item", reject: String = "block", conflict: String = "keep-user") -> JSON
    {
        ["table": .string(table), "where": "mine = 1", "onReject": .string(reject), "onConflict": .string(conflict)]
    }

    /// Installs the first release, lets the app write, and applies the second release.
    private func update(
        _ first: String, app: String, _ second: String, _ preserve: [JSON] = [own()]
    ) throws -> Shell.Ended {
        try shop.pack("1.0.0", [.shared(first, preserve)])
        try shop.install("1.0.0")
        try shop.sql("app.db", app)
        try shop.pack("2.0.0", [.shared(second, preserve)])
        return try shop.apply("2.0.0")
    }

    private func must(_ ended: Shell.Ended) throws {
        try #require(ended.status == 0, "exit \(ended.status): \(ended.errors)")
    }

    /// SQLite's `quote` writes infinity as a word that is not valid in SQL.
    @Test(arguments: ["9e999", "-9e999"])
    func `a column of the app whose default is infinite does not prevent an update`(value: String) throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, mine INT DEFAULT 1"
        let app = "ALTER TABLE item ADD COLUMN best REAL DEFAULT \(value); INSERT INTO item(id) VALUES(1);"
        try must(try update("\(schema));", app: app, "\(schema), z);"))
        #expect(try shop.read("app.db", "SELECT id, mine FROM item") == "1|1\n")
    }

    @Test func `AUTOINCREMENT does not reuse a number after a rollback`() throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY AUTOINCREMENT, t, mine INT DEFAULT 1);"
        try must(update(schema, app: "SELECT 1", schema + "INSERT INTO item VALUES(1, 'a', 0);"))
        try shop.sql("app.db", "INSERT INTO item(id, t) VALUES(100, 'x'); DELETE FROM item WHERE id = 100")
        #expect(try shop.moult("rollback").status == 0)
        #expect(
            try shop.read("app.db", "INSERT INTO item(t) VALUES('next'); SELECT id FROM item WHERE t = 'next'")
                == "101\n")
    }

    @Test func `a trigger that calls an app function does not block the update`() throws {
        let schema = """
            CREATE TABLE item(id INTEGER PRIMARY KEY, t, mine INT DEFAULT 1);
            CREATE TRIGGER a AFTER INSERT ON item BEGIN SELECT appfunc(new.t); END;
            """
        try shop.pack("1.0.0", [.shared(schema, [Self.own()])])
        try shop.install("1.0.0")
        try App.run(shop.path("app.db"), "INSERT INTO item(id, t) VALUES(10, 'MINE')")
        try shop.pack("2.0.0", [.shared(schema + "CREATE TABLE more(x);", [Self.own()])])
        try must(shop.apply("2.0.0"))
        #expect(try shop.read("app.db", "SELECT t FROM item") == "MINE\n")
    }

    private static let related = """
        CREATE TABLE item(id INTEGER PRIMARY KEY, t TEXT UNIQUE, mine INT DEFAULT 1);
        CREATE TABLE part(id INTEGER PRIMARY KEY, item INT REFERENCES item(id) ON DELETE CASCADE, mine INT DEFAULT 1);
        """

    @Test func `a conflict does not remove rows that refer to the replaced row`() throws {
        // The user's row 2 has the key of one shipped row and the unique name of another; both shipped rows have parts.
        try must(
            update(
                Self.related + "INSERT INTO item VALUES(1, 's', 0);", app: "INSERT INTO item VALUES(2, 'three', 1)",
                Self.related
                    + "INSERT INTO item VALUES(1, 's', 0), (2, 'two', 0), (3, 'three', 0);"
                    + "INSERT INTO part VALUES(1, 1, 0), (2, 2, 0), (3, 3, 0);",
                [Self.own(reject: "table")]))
        let there = try shop.sql("app.db", "SELECT 'item', id, t FROM item; SELECT 'part', id, item FROM part")
        let rejected = try shop.rejected("app.db")
        #expect(there.contains("item|1|s\n") && there.contains("part|1|1\n") && there.contains("part|2|2\n"))
        #expect(there.contains("item|2|three\n"))
        #expect(rejected.contains("two"))
        #expect(there.contains("item|3|three\n") || rejected.split(separator: "\n").contains { $0.contains("three") })
        #expect(there.contains("part|3|3\n") || rejected.contains("part|"))
        #expect(try shop.read("app.db", "PRAGMA foreign_key_check") == "")
    }
}
