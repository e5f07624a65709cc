import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Rows are carried over one to one and byte for byte, without an effect on other rows.
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

    // MARK: Values

    /// SQLite's `quote` writes infinity as a word that is not valid in SQL.
    @Test(arguments: ["9e999", "-9e999"])
    func `a column of the app whose default is infinite does not prevent an update`(value: String) throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, mine INT DEFAULT 1"
        let app = "ALTER TABLE item ADD COLUMN best REAL DEFAULT \(value); INSERT INTO item(id) VALUES(1);"
        try must(try update("\(schema));", app: app, "\(schema), z);"))
        #expect(try shop.read("app.db", "SELECT id, mine FROM item") == "1|1\n")
    }

    static let values = [
        "CAST(x'C4E4FF' AS TEXT)", "CAST(x'61006200' AS TEXT)", "CAST(x'EDA080' AS TEXT)", "9e999", "-9e999", "x''",
        "''",
        "x'00FF80'", "9223372036854775807", "-9223372036854775808", "9007199254740993", "0.1", "1e-320", "1.0", "NULL",
        "'007'", "'1e3'", "x'373037'", "'line' || char(13) || char(10) || 'end '", "zeroblob(100000)",
        "hex(zeroblob(70000))",
    ]

    private static let exact =
        "SELECT id, typeof(t), CASE typeof(t) WHEN 'real' THEN printf('%!.17g', t) ELSE hex(t) END"

    @Test func `every value is carried over byte for byte`() throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, t, mine INT DEFAULT 1);"
        let rows = Self.values.enumerated().map { "(\($0.offset + 10), \($0.element), 1)" }.joined(separator: ",")
        let app = "INSERT INTO item VALUES\(rows);"
        let expected = try Shell.must(
            ["sqlite3", ":memory:", "\(schema)\(app) \(Self.exact) FROM item WHERE mine = 1 ORDER BY id"])
        try must(update(schema, app: app, schema + "INSERT INTO item VALUES(1, 's', 0);"))
        #expect(try shop.read("app.db", "\(Self.exact) FROM item WHERE mine = 1 ORDER BY id") == expected)
        #expect(try shop.kept().isEmpty)
    }

    @Test func `with onReject table, a value that the new column would change is rejected`() throws {
        try must(
            update(
                "CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT, mine INT DEFAULT 1);",
                app: "INSERT INTO item VALUES(10, '007', 1), (11, 'x', 1)",
                "CREATE TABLE item(id INTEGER PRIMARY KEY, code INTEGER, mine INT DEFAULT 1);",
                [Self.own(reject: "table")]))
        #expect(try shop.read("app.db", "SELECT id, code, typeof(code) FROM item") == "11|x|text\n")
        #expect(try shop.rejected("app.db").contains("007"))
    }

    static let changing: [(name: String, old: String, value: String, new: String)] = [
        ("leading zeros", "t TEXT", "'007'", "t INTEGER"), ("digits become a number", "t TEXT", "'7'", "t INTEGER"),
        ("a number becomes text", "t", "7", "t TEXT"), ("exact digits become a real", "t TEXT", "'1.10'", "t REAL"),
        ("an integer becomes a real", "t", "9007199254740993", "t REAL"),
        ("a STRICT table", "t TEXT", "'007'", "t INTEGER"),
    ]

    @Test(arguments: changing)
    func `with onReject block, a value that the new column would change blocks the update`(
        _ change: (name: String, old: String, value: String, new: String)
    ) throws {
        let strict = change.name.contains("STRICT") ? " STRICT" : ""
        let ended = try update(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, \(change.old), mine INT DEFAULT 1);",
            app: "INSERT INTO item VALUES(10, \(change.value), 1)",
            "CREATE TABLE item(id INTEGER PRIMARY KEY, \(change.new), mine INT DEFAULT 1)\(strict);")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(try shop.read("app.db", "SELECT quote(t) FROM item WHERE id = 10") == "\(change.value)\n")
        #expect(try shop.version() == "1.0.0")
    }

    @Test func `a row without a key keeps its implicit rowid`() throws {
        let schema = "CREATE TABLE item(t, mine INT DEFAULT 1); CREATE TABLE fav(item INT, mine INT DEFAULT 1);"
        try must(
            update(
                schema, app: "INSERT INTO item(rowid, t) VALUES(50, 'MINE'); INSERT INTO fav(item) VALUES(50)",
                schema + "INSERT INTO item VALUES('s1', 0), ('s2', 0);", [Self.own(), Self.own("fav")]))
        #expect(
            try shop.read("app.db", "SELECT i.t FROM fav JOIN item i ON i.rowid = fav.item") == "MINE\n")
    }

    @Test func `equal rows without a key are all carried over`() throws {
        let schema = "CREATE TABLE item(t, mine INT DEFAULT 1);"
        try must(
            update(
                schema, app: "INSERT INTO item(t) VALUES('A'), ('A'), ('A')",
                schema + "INSERT INTO item VALUES('s', 0);"))
        #expect(try shop.read("app.db", "SELECT count(*) FROM item WHERE t = 'A'") == "3\n")
    }

    @Test func `generated columns are computed, not carried over`() throws {
        let schema = "CREATE TABLE item(a INT, b INT AS (a + 1) STORED, c INT AS (a + 2), mine INT DEFAULT 1);"
        try must(update(schema, app: "INSERT INTO item(a) VALUES(40)", schema + "CREATE TABLE more(x);"))
        #expect(try shop.read("app.db", "SELECT a, b, c FROM item") == "40|41|42\n")
        #expect(try shop.kept().isEmpty)
    }

    @Test func `the rows of a table WITHOUT ROWID with odd names are carried over`() throws {
        let schema = """
            CREATE TABLE "it""em x"("na me" TEXT, "order" INT, mine INT DEFAULT 1, PRIMARY KEY("na me", "order"))
            WITHOUT ROWID;
            """
        try must(
            update(
                schema, app: "INSERT INTO \"it\"\"em x\" VALUES('MINE', 1, 1), ('MINE', 2, 1)",
                schema + "CREATE TABLE y(x);",
                [Self.own("it\"em x")]))
        #expect(try shop.read("app.db", "SELECT count(*) FROM \"it\"\"em x\" WHERE \"na me\" = 'MINE'") == "2\n")
    }

    // MARK: Keys

    @Test(arguments: ["name TEXT PRIMARY KEY COLLATE NOCASE", "name TEXT UNIQUE COLLATE NOCASE"])
    func `with onReject block, two rows of the user whose keys become equal block the update`(column: String) throws {
        let ended = try update(
            "CREATE TABLE item(name TEXT, mine INT DEFAULT 1);", app: "INSERT INTO item(name) VALUES('Salt'), ('salt')",
            "CREATE TABLE item(\(column), mine INT DEFAULT 1);")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(try shop.read("app.db", "SELECT name FROM item") == "Salt\nsalt\n")
    }

    @Test(arguments: ["name TEXT PRIMARY KEY COLLATE NOCASE", "name TEXT UNIQUE COLLATE NOCASE"])
    func `with onReject table, one of two rows of the user whose keys become equal is rejected`(column: String) throws {
        let ended = try update(
            "CREATE TABLE item(name TEXT, mine INT DEFAULT 1);", app: "INSERT INTO item(name) VALUES('Salt'), ('salt')",
            "CREATE TABLE item(\(column), mine INT DEFAULT 1);", [Self.own(reject: "table")])
        #expect(ended.status == 0, "\(ended.errors)")
        let names = try shop.sql("app.db", "SELECT name FROM item") + shop.rejected("app.db")
        #expect(names.contains("Salt") && names.contains("salt"), "\(names)")
        #expect(try shop.read("app.db", "SELECT count(*) FROM item") == "1\n")
    }

    @Test func `AUTOINCREMENT does not reuse the number of a deleted row`() throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY AUTOINCREMENT, t, mine INT DEFAULT 1);"
        try must(
            update(
                schema,
                app:
                    "INSERT INTO item(id, t) VALUES(100, 'x'), (7, 'MINE'); DELETE FROM item WHERE id = 100",
                schema + "INSERT INTO item VALUES(1, 'a', 0);"))
        #expect(
            try shop.read("app.db", "INSERT INTO item(t) VALUES('next'); SELECT id FROM item WHERE t = 'next'")
                == "101\n")
    }

    @Test func `the AUTOINCREMENT counter of the release is kept if it is higher`() throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY AUTOINCREMENT, t, mine INT DEFAULT 1);"
        try must(
            update(
                schema, app: "INSERT INTO item(id, t) VALUES(7, 'MINE')",
                schema + "INSERT INTO item VALUES(500, 'a', 0); DELETE FROM item;"))
        #expect(try shop.read("app.db", "SELECT seq FROM sqlite_sequence WHERE name = 'item'") == "500\n")
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

    @Test func `a shipped row with the same rowid as a row of the user is not lost`() throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY AUTOINCREMENT, t, mine INT DEFAULT 1);"
        try must(
            update(
                schema + "INSERT INTO item VALUES(1, 'a', 0), (2, 'b', 0);", app: "INSERT INTO item(t) VALUES('USER3')",
                schema + "INSERT INTO item VALUES(1, 'a', 0), (2, 'b', 0), (3, 'SHIPPED3', 0);"))
        #expect(try shop.read("app.db", "SELECT t FROM item ORDER BY id") == "a\nb\nUSER3\n")
        #expect(try shop.rejected("app.db").contains("SHIPPED3"))
    }

    // MARK: Triggers and derived content

    @Test func `triggers do not fire while rows are carried over`() throws {
        let schema = """
            CREATE TABLE item(id INTEGER PRIMARY KEY, t, mine INT DEFAULT 1); CREATE TABLE other(x);
            CREATE TRIGGER a AFTER INSERT ON item BEGIN INSERT INTO other VALUES('FIRED'); END;
            CREATE TRIGGER b BEFORE INSERT ON item BEGIN DELETE FROM other WHERE x = 'SHIPPED'; END;
            CREATE TRIGGER c AFTER DELETE ON item BEGIN INSERT INTO other VALUES('DELETED'); END;
            """
        try must(
            update(
                schema, app: "INSERT INTO item(id, t) VALUES(10, 'MINE'), (11, 'MORE'); DELETE FROM other",
                schema + "INSERT INTO item VALUES(10, 's', 0); DELETE FROM other; INSERT INTO other VALUES('SHIPPED');")
        )
        #expect(try shop.read("app.db", "SELECT x FROM other") == "SHIPPED\n")
        #expect(try shop.read("app.db", "SELECT t FROM item ORDER BY id") == "MINE\nMORE\n")
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

    static let indexing: [(name: String, sql: String)] = [
        ("nothing keeps it up to date", ""),
        (
            "triggers",
            "CREATE TRIGGER ai AFTER INSERT ON item BEGIN INSERT INTO fts(rowid, t) VALUES(new.id, new.t); END;"
        ),
    ]

    @Test(arguments: indexing)
    func `full-text search finds a carried row`(_ indexing: (name: String, sql: String)) throws {
        let schema = """
            CREATE TABLE item(id INTEGER PRIMARY KEY, t, mine INT DEFAULT 1);
            CREATE VIRTUAL TABLE fts USING fts5(t, content='item', content_rowid='id');
            \(indexing.sql)
            """
        func rows(_ word: String) -> String {
            "INSERT INTO item VALUES(1, '\(word)', 0); INSERT INTO fts(fts) VALUES('rebuild');"
        }
        try must(
            update(
                schema + rows("flour"),
                app: "INSERT INTO item VALUES(10, 'saffron', 1); INSERT INTO fts(fts) VALUES('rebuild')",
                schema + rows("rice")))
        #expect(try shop.read("app.db", "SELECT rowid FROM fts WHERE fts MATCH 'saffron'") == "10\n")
        #expect(try shop.read("app.db", "SELECT rowid FROM fts WHERE fts MATCH 'rice'") == "1\n")
        #expect(try shop.read("app.db", "SELECT rowid FROM fts WHERE fts MATCH 'flour'") == "")
        #expect(try shop.read("app.db", "INSERT INTO fts(fts, rank) VALUES('integrity-check', 1)") == "")
    }

    @Test func `full-text search does not find a shipped row that a carried row replaced`() throws {
        let schema = """
            CREATE TABLE item(id INTEGER PRIMARY KEY, t, mine INT DEFAULT 1);
            CREATE VIRTUAL TABLE fts USING fts5(t, content='item', content_rowid='id');
            CREATE TRIGGER ai AFTER INSERT ON item BEGIN INSERT INTO fts(rowid, t) VALUES(new.id, new.t); END;
            """
        try must(
            update(
                schema, app: "INSERT INTO item VALUES(10, 'saffron', 1)",
                schema + "INSERT INTO item VALUES(10, 'rice', 0);"))
        #expect(try shop.read("app.db", "SELECT rowid FROM fts WHERE fts MATCH 'saffron'") == "10\n")
        #expect(try shop.read("app.db", "SELECT rowid FROM fts WHERE fts MATCH 'rice'") == "")
    }

    // MARK: Foreign keys

    private static let related = """
        CREATE TABLE item(id INTEGER PRIMARY KEY, t TEXT UNIQUE, mine INT DEFAULT 1);
        CREATE TABLE part(id INTEGER PRIMARY KEY, item INT REFERENCES item(id) ON DELETE CASCADE, mine INT DEFAULT 1);
        """

    @Test func `with onReject table, only the row whose parent is missing is rejected`() throws {
        try must(
            update(
                Self.related + "INSERT INTO item VALUES(1, 's', 0), (2, 't', 0);",
                app: "INSERT INTO part VALUES(50, 2, 1), (51, 1, 1)",
                Self.related + "INSERT INTO item VALUES(1, 's', 0);",
                [Self.own(reject: "table"), Self.own("part", reject: "table")]))
        #expect(try shop.read("app.db", "SELECT id FROM part") == "51\n")
        #expect(try shop.rejected("app.db").contains("50"))
        #expect(try shop.read("app.db", "PRAGMA foreign_key_check") == "")
    }

    @Test func `a row whose parent is rejected is rejected too`() throws {
        try must(
            update(
                Self.related, app: "INSERT INTO item VALUES(9, 'bad', 1); INSERT INTO part VALUES(50, 9, 1)",
                Self.related.replacing("t TEXT UNIQUE", "t TEXT CHECK(t <> 'bad')"),
                [Self.own(reject: "table"), Self.own("part", reject: "table")]))
        #expect(try shop.read("app.db", "SELECT count(*) FROM part; SELECT count(*) FROM item") == "0\n0\n")
        #expect(try shop.read("app.db", "SELECT \"table\" FROM moult_rejected ORDER BY 1") == "item\npart\n")
    }

    @Test func `with onReject block, a row whose parent is missing blocks the update`() throws {
        let ended = try update(
            Self.related + "INSERT INTO item VALUES(1, 's', 0), (2, 't', 0);", app: "INSERT INTO part VALUES(50, 2, 1)",
            Self.related + "INSERT INTO item VALUES(1, 's', 0);", [Self.own(), Self.own("part")])
        #expect(ended.status == 3)
        #expect(try shop.read("app.db", "SELECT id FROM part") == "50\n")
    }

    @Test func `a child row is carried over even if its table comes before that of its parent`() throws {
        try must(
            update(
                Self.related, app: "INSERT INTO item VALUES(9, 'MINE', 1); INSERT INTO part VALUES(50, 9, 1)",
                Self.related + "CREATE TABLE more(x);", [Self.own("part"), Self.own()]))
        #expect(try shop.read("app.db", "SELECT t FROM part JOIN item ON item.id = part.item") == "MINE\n")
    }

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

extension String {
    fileprivate func replacing(_ old: String, _ new: String) -> String {
        guard let range = self.firstRange(of: old) else { return self }
        return self[..<range.lowerBound] + new + self[range.upperBound...]
    }
}
