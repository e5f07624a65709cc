import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The rows of a shared database that an update or a rollback carries over, and what happens to the other rows.
@Suite struct PreserveTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    static let own: JSON = ["table": "item", "where": "mine = 1"]

    private func shipped(_ name: String) -> String { Self.item + "INSERT INTO item VALUES('\(name)', 0);" }

    /// Installs the first release; the app writes `MINE`.
    private func begin(_ preserve: [JSON] = [own]) throws {
        try shop.pack("1.0.0", [.shared(shipped("ONE"), preserve)])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1)")
    }

    private func names() throws -> String { try shop.read("app.db", "SELECT name FROM item ORDER BY name") }

    @Test func `a release that no longer preserves a table is refused if rows were selected`() throws {
        try begin()
        let before = try shop.tree()
        try shop.pack("2.0.0", [.shared(shipped("TWO"))])
        #expect(try shop.plan("2.0.0").status == 3)
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("--accept-unpreserved"), "\(ended.errors)")
        #expect(try names() == "MINE\nONE\n")
        #expect(try shop.tree() == before)
    }

    @Test func `a release that stops preserving a table is installed if no row was selected`() throws {
        try begin()
        try shop.sql("app.db", "DELETE FROM item WHERE mine = 1")
        try shop.pack("2.0.0", [.shared(shipped("TWO"))])
        try shop.install("2.0.0")
        #expect(try names() == "TWO\n")
        #expect(try shop.kept().isEmpty)
    }

    private func expectKeptWhole(_ reason: String = "replaced") throws {
        let kept = try shop.onlyKept("app")
        #expect(kept.reason == reason)
        #expect(kept.release == "1.0.0")
        #expect(kept.record["kind"]?.string == "shared")
        #expect(kept.record["path"]?.string == shop.path("app.db"))
        #expect(kept.rows("item") == 1)
        #expect(try kept.sql("app.db", "SELECT name FROM item ORDER BY name") == "MINE\nONE\n")
    }

    @Test func `with the operator's consent, rows that are not preserved are kept in quarantine`() throws {
        try begin()
        try shop.pack("2.0.0", [.shared(shipped("TWO"))])
        let result = try Shop.last(shop.apply("2.0.0", "--accept-unpreserved", "--json"))
        #expect(try names() == "TWO\n")
        try expectKeptWhole()
        #expect(Counts.inResult(result, "app") == ["item": Counts(kept: 1)])
        let told = result["kept"]?.array ?? []
        #expect(told.count == 1)
        #expect(told.first?["database"]?.string == "app")
        #expect(told.first?["release"]?.string == "1.0.0")
        #expect(told.first?["reason"]?.string == "replaced")
        #expect(told.first?["rows"]?["item"]?.integer == 1)
        #expect(try told.first?["directory"]?.string == shop.onlyKept("app").directory)
    }

    @Test func `rows that the manifest declares as no longer preserved are kept in quarantine`() throws {
        try begin()
        try shop.pack("2.0.0", [.shared(shipped("TWO"), more: [.init("unpreserved", "keep")])])
        try shop.install("2.0.0")
        #expect(try names() == "TWO\n")
        try expectKeptWhole()
    }

    @Test func `the new release selects rows of a table that the installed release does not preserve`() throws {
        try begin([])
        try shop.pack("2.0.0", [.shared(shipped("TWO"), [Self.own])])
        try shop.install("2.0.0")
        #expect(try names() == "MINE\nTWO\n")
    }

    @Test func `the condition of the installed release selects the rows`() throws {
        // The condition of the new release would select no row in the old database.
        try begin()
        try shop.pack(
            "2.0.0",
            [
                .shared(
                    "CREATE TABLE item(name TEXT PRIMARY KEY, whose TEXT DEFAULT 'user');",
                    [["table": "item", "where": "whose = 'user'"]])
            ])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT name, whose FROM item") == "MINE|user\n")
    }

    @Test func `a row that several preserve entries select is carried over once`() throws {
        try begin([Self.own, ["table": "item", "where": "name LIKE 'M%'"]])
        try shop.sql("app.db", "INSERT INTO item VALUES('MORE', 0)")
        try shop.pack("2.0.0", [.shared(shipped("TWO"), [Self.own])])
        let result = try Shop.last(shop.apply("2.0.0", "--json"))
        #expect(try names() == "MINE\nMORE\nTWO\n")
        #expect(Counts.inResult(result, "app") == ["item": Counts(carried: 2)])
    }

    // MARK: Other content of the app

    /// SQL that changes content other than the preserved rows, the changed table, and a text in the changed content.
    static let content: [(name: String, sql: String, table: String?, search: String)] = [
        ("a row that is not selected", "INSERT INTO item VALUES('APPROW', 0)", "item", "APPROW"),
        ("a shipped row that the app changed", "UPDATE item SET name = 'APPROW' WHERE name = 'ONE'", "item", "APPROW"),
        ("a table of the app", "CREATE TABLE own(x); INSERT INTO own VALUES('APPROW')", "own", "APPROW"),
    ]

    @Test(arguments: content)
    func `content that is neither carried over nor rejected is kept in quarantine`(
        _ content: (name: String, sql: String, table: String?, search: String)
    ) throws {
        try begin()
        try shop.sql("app.db", content.sql)
        try shop.pack("2.0.0", [.shared(shipped("TWO"), [Self.own])])
        try shop.install("2.0.0")
        #expect(try names() == "MINE\nTWO\n")
        let kept = try shop.onlyKept("app")
        #expect(kept.rows(content.table ?? "") == 1)
        #expect(try shop.databases(with: content.search).count == 1)
        let whole = try kept.sql("app.db", "SELECT name FROM item WHERE name = 'MINE'")
        #expect(whole == (content.table == "own" ? "MINE\n" : ""))
    }

    static let objects: [(name: String, sql: String)] = [
        ("index", "CREATE INDEX own ON item(mine)"), ("view", "CREATE VIEW own AS SELECT name FROM item"),
        ("trigger", "CREATE TRIGGER own AFTER INSERT ON item BEGIN SELECT 1; END"),
        ("empty table", "CREATE TABLE own(x)"),
        ("column", "ALTER TABLE item ADD COLUMN own; UPDATE item SET own = 'APPVALUE' WHERE name = 'MINE'"),
    ]

    @Test(arguments: objects)
    func `an update keeps the old database if the app has created an object in it`(
        _ object: (name: String, sql: String)
    ) throws {
        try begin()
        try shop.sql("app.db", object.sql)
        try shop.pack("2.0.0", [.shared(shipped("TWO"), [Self.own])])
        try shop.install("2.0.0")
        #expect(try names() == "MINE\nTWO\n")
        #expect(try shop.onlyKept("app").sql("app.db", ".schema").contains("own"))
    }

    @Test func `no copy is kept if the app only deletes a shipped row or runs VACUUM`() throws {
        try begin()
        try shop.sql("app.db", "DELETE FROM item WHERE name = 'ONE'; VACUUM; ANALYZE; PRAGMA user_version = 0;")
        try shop.pack("2.0.0", [.shared(shipped("TWO"), [Self.own])])
        try shop.install("2.0.0")
        #expect(try names() == "MINE\nTWO\n")
        #expect(try shop.kept().isEmpty)
    }

    @Test func `content that is only in the WAL is also kept`() throws {
        try begin()
        try App.run(
            shop.path("app.db"), crash: true, "PRAGMA journal_mode = WAL", "INSERT INTO item VALUES('APPROW', 0)",
            "INSERT INTO item VALUES('LATE', 1)")
        try shop.pack("2.0.0", [.shared(shipped("TWO"), [Self.own])])
        try shop.install("2.0.0")
        #expect(try names() == "LATE\nMINE\nTWO\n")
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT name FROM item WHERE name = 'APPROW'") == "APPROW\n")
    }

    // MARK: Rollback

    /// Installs release 2.0.0, which adds a column and a table and preserves the rows of both tables; the app then writes to
    /// both.
    private func beginSecond() throws {
        try shop.pack("1.0.0", [.shared(shipped("ONE"), [Self.own])])
        try shop.install("1.0.0")
        try shop.pack(
            "2.0.0",
            [
                .shared(
                    "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0, note TEXT); "
                        + "INSERT INTO item VALUES('TWO', 0, NULL); CREATE TABLE fav(x TEXT PRIMARY KEY);",
                    [Self.own, ["table": "fav"]])
            ])
        try shop.install("2.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1, 'NOTE'); INSERT INTO fav VALUES('FAV')")
    }

    @Test func `rollback keeps rows that the older schema cannot hold`() throws {
        try beginSecond()
        let result = try Shop.last(shop.moult("rollback", "--json"))
        #expect(try shop.read("app.db", "SELECT * FROM item ORDER BY name") == "MINE|1\nONE|0\n")
        let kept = try shop.onlyKept("app")
        #expect(kept.reason == "rolled-back")
        #expect(kept.release == "2.0.0")
        #expect(kept.rows("fav") == 1)
        #expect(try kept.sql("app.db", "SELECT * FROM item WHERE mine = 1; SELECT x FROM fav") == "MINE|1|NOTE\nFAV\n")
        #expect(Counts.inResult(result, "app")["fav"] == Counts(kept: 1))
        #expect(result["kept"]?.array?.count == 1)
    }

    @Test func `rollback carries rows that only the newer release preserves`() throws {
        let fav = "CREATE TABLE fav(x TEXT PRIMARY KEY);"
        try shop.pack("1.0.0", [.shared(shipped("ONE") + fav)])
        try shop.install("1.0.0")
        try shop.pack("2.0.0", [.shared(shipped("TWO") + fav, [Self.own, ["table": "fav"]])])
        try shop.install("2.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1); INSERT INTO fav VALUES('FAV')")
        #expect(try shop.moult("rollback").status == 0)
        #expect(try names() == "MINE\nONE\n")
        #expect(try shop.read("app.db", "SELECT x FROM fav") == "FAV\n")
        #expect(try shop.kept().isEmpty)
    }

    @Test func `rollback carries rows that only the older release preserves`() throws {
        try begin()
        try shop.sql("app.db", "DELETE FROM item WHERE mine = 1")
        try shop.pack("2.0.0", [.shared(shipped("TWO"))])
        try shop.install("2.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1)")
        #expect(try shop.moult("rollback").status == 0)
        #expect(try names() == "MINE\nONE\n")
    }

    /// The second case's older condition is not valid in the newer schema.
    @Test(arguments: [("own INT, mine INT", "1 own row,2 mine row"), ("mine INT", "2 mine row")])
    func `rollback carries rows that either release preserves if their conditions differ`(columns: String, rows: String)
        throws
    {
        try shop.pack(
            "1.0.0", [.shared("CREATE TABLE t(v, own INT, mine INT);", [["table": "t", "where": "own = 1"]])])
        try shop.pack(
            "2.0.0",
            [.shared("CREATE TABLE t(v, \(columns)); CREATE TABLE z(v);", [["table": "t", "where": "mine = 1"]])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t(v, own) VALUES('1 own row', 1)")
        try shop.install("2.0.0")
        try shop.sql("app.db", "INSERT INTO t(v, mine) VALUES('2 mine row', 1)")
        let count = rows.split(separator: ",").count
        let plan = try shop.moult("rollback", "-n")
        #expect(plan.output.contains("\(count) row\(count == 1 ? "" : "s") of t to carry over"), "\(plan)")
        #expect(try shop.moult("rollback").status == 0)
        #expect(try shop.read("app.db", "SELECT group_concat(v) FROM (SELECT v FROM t ORDER BY v)") == "\(rows)\n")
    }

    @Test func `a rollback and the update after it lose no rows`() throws {
        try beginSecond()
        #expect(try shop.moult("rollback").status == 0)
        try shop.sql("app.db", "INSERT INTO item VALUES('LATER', 1)")
        try shop.must("unhold")
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT name FROM item ORDER BY name") == "LATER\nMINE\nTWO\n")
        #expect(try shop.databases(with: "FAV").count == 1)
    }

    /// A store may skip the release with the first new name.
    @Test func `a column that was renamed twice keeps its values in a store that skips a release`() throws {
        let names = ["a", "b", "c"]
        let columns: [[String: JSON]] = [[:], ["a": "b"], ["a": "c", "b": "c"]]
        for number in 1...3 {
            let rule: JSON = .compact([
                "table": "t",
                "columns": columns[number - 1].isEmpty
                    ? nil
                    : .object(columns[number - 1].sorted { $0.key < $1.key }.map { JSON.Member($0.key, $0.value) }),
            ])
            try shop.pack(
                "\(number).0.0", [.shared("CREATE TABLE t(id INTEGER PRIMARY KEY, \(names[number - 1]));", [rule])])
        }
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t VALUES(1, 'A')")
        try shop.install("3.0.0")
        #expect(try shop.read("app.db", "SELECT c FROM t") == "A\n")
    }

    @Test func `two columns that would become one are refused`() throws {
        try shop.pack("1.0.0", [.shared("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);", [["table": "t"]])])
        try shop.pack(
            "2.0.0",
            [
                .shared(
                    "CREATE TABLE t(id INTEGER PRIMARY KEY, c);",
                    [["table": "t", "columns": ["a": "c", "b": "c"]]])
            ])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t VALUES(1, 'A', 'B')")
        let refused = try shop.apply("2.0.0")
        #expect(refused.status == 3 && refused.errors.contains("a and b would both become c"), "\(refused)")
        #expect(try shop.read("app.db", "SELECT a, b FROM t") == "A|B\n")
    }
}
