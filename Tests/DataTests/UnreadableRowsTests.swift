import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Rows that an index hides, or that cannot be carried over because their table is virtual or damaged, are not lost.
@Suite(.tags(.thorough)) struct UnreadableRowsTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    // MARK: an index that lacks entries

    /// SQLite keeps the rows of a table WITHOUT ROWID in the index of its primary key.
    private static let kinds = ["", " WITHOUT ROWID"]

    private static func indexed(_ kind: String) -> String {
        "CREATE TABLE item(id INTEGER PRIMARY KEY, name, mine INT DEFAULT 0)\(kind); CREATE INDEX own ON item(mine);"
    }

    /// Adds a row while the schema does not list the index, which therefore lacks the row.
    private func insertMine(_ database: String) throws {
        let root = try shop.read(database, "SELECT rootpage FROM sqlite_schema WHERE name = 'own'")
        try shop.sql(database, "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'own'")
        try shop.sql(database, "INSERT INTO item VALUES(1, 'MINE', 1)")
        try shop.sql(
            database,
            "PRAGMA writable_schema = 1; INSERT INTO sqlite_schema "
                + "VALUES('index', 'own', 'item', \(root), 'CREATE INDEX own ON item(mine)')")
        #expect(try shop.read(database, "SELECT count(*) FROM item WHERE mine = 1") == "0\n")
    }

    @Test(arguments: kinds) func `a row that is missing from an index is carried over`(_ kind: String) throws {
        let own: JSON = ["table": "item", "where": "mine = 1"]
        try shop.pack("1.0.0", [.shared(Self.indexed(kind), [own])])
        try shop.install("1.0.0")
        try insertMine("app.db")
        try shop.pack("2.0.0", [.shared(Self.indexed(kind) + "CREATE TABLE more(x);", [own])])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT name FROM item") == "MINE\n")
    }

    @Test(arguments: kinds) func `a value that is missing from an index counts as dropped by a migration`(
        _ kind: String
    ) throws {
        try shop.pack("1.0.0", [.user(Self.indexed(kind) + "PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try insertMine("diary.db")
        try shop.pack(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE item(id INTEGER PRIMARY KEY, name)\(kind); PRAGMA user_version = 2;",
                    ["m/2.sql": "DROP INDEX own; ALTER TABLE item DROP COLUMN mine; PRAGMA user_version = 2;\n"])
            ])
        try shop.install("2.0.0")
        #expect(try shop.onlyKept("diary").rows("item") == 1)
    }

    @Test(arguments: kinds) func `a row that is missing from an index is salvaged`(_ kind: String) throws {
        try shop.pack("1.0.0", [.user(Self.indexed(kind))])
        try shop.install("1.0.0")
        try insertMine("diary.db")
        try shop.addInvalidJournal("diary.db")
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        #expect(try shop.onlyKept("diary").sql("salvaged.db", "SELECT name FROM item") == "MINE\n")
    }

    /// An app may give SQLite's own names other orders: then SQLite does not find a key where this process looks for it.
    @Test func `a row is carried over even if the app's collation sorts its primary key differently`() throws {
        let schema = "CREATE TABLE item(name TEXT COLLATE NOCASE PRIMARY KEY, v) WITHOUT ROWID;"
        let own: JSON = ["table": "item", "where": "name = 'b'"]
        try shop.pack("1.0.0", [.shared(schema, [own])])
        try shop.install("1.0.0")
        let insert = """
            import sqlite3, sys; c = sqlite3.connect(sys.argv[1])
            c.create_collation('NOCASE', lambda a, b: (a < b) - (a > b))
            c.executemany('INSERT INTO item VALUES(?, 1)', [(x,) for x in 'abcd']); c.commit()
            """
        try Shell.must(["python3", "-c", insert, shop.path("app.db")])
        try shop.pack("2.0.0", [.shared(schema + "CREATE TABLE more(x);", [own])])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT name FROM item") == "b\n")
    }

    // MARK: virtual tables

    @Test func `a rollback keeps the rows of a table that the newer release has made virtual`() throws {
        let note: JSON = ["table": "note"]
        try shop.pack("1.0.0", [.shared("CREATE TABLE note(t);", [note])])
        try shop.install("1.0.0")
        try shop.pack(
            "2.0.0",
            [.shared("CREATE VIRTUAL TABLE note USING fts5(t);", more: [.init("unpreserved", .string("keep"))])])
        try shop.install("2.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('MINE')")
        let ended = try shop.moult("rollback", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        let result = try Shop.last(ended)
        #expect(Counts.inResult(result, "app") == ["note": Counts(kept: 1)])
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT t FROM note") == "MINE\n")
    }

    @Test func `an update is refused if the app has made a preserved table virtual`() throws {
        let note: JSON = ["table": "note"]
        try shop.pack("1.0.0", [.shared("CREATE TABLE note(t);", [note])])
        try shop.install("1.0.0")
        try shop.sql(
            "app.db", "DROP TABLE note; CREATE VIRTUAL TABLE note USING fts5(t); INSERT INTO note VALUES('MINE')")
        try shop.pack("2.0.0", [.shared("CREATE TABLE note(t); CREATE TABLE more(x);", [note])])
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3)
        #expect(ended.errors.contains("note is a virtual table"), "\(ended.errors)")
        let result = try Shop.last(shop.apply("2.0.0", "--accept-unpreserved", "--json"))
        #expect(Counts.inResult(result, "app") == ["note": Counts(kept: 1)])
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT t FROM note") == "MINE\n")
    }

    // MARK: damage

    private static let two = "CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE TABLE note(id INTEGER PRIMARY KEY, x);"

    /// Creates a database with an intact note, and a table `t` with a damaged page.
    private func makeDamaged(_ path: String) throws {
        try Shop.sql(
            path,
            Self.two + "INSERT INTO note VALUES(1, 'NOTE'); "
                + "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
                + "INSERT INTO t SELECT i, hex(zeroblob(200)) FROM n;")
        // The page is a leaf of `t`: the file begins with the schema and the roots of both tables.
        try Shell.must([
            "dd", "if=/dev/zero", "of=\(path)", "bs=4096", "seek=8", "count=1", "conv=notrunc", "status=none",
        ])
        let ended = try Shell.run(["sqlite3", path, "SELECT sum(length(x)) FROM t"])
        #expect(ended.status != 0)
    }

    @Test func `an update with the operator's consent keeps a damaged database, and carries the readable tables`()
        throws
    {
        let rules: [JSON] = [["table": "note"], ["table": "t"]]
        try shop.pack("1.0.0", [.shared(Self.two, rules)])
        try shop.install("1.0.0")
        try shop.sql(
            "app.db",
            "INSERT INTO note VALUES(1, 'NOTE'); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
                + "INSERT INTO t SELECT i, hex(zeroblob(200)) FROM n;")
        try Shell.must([
            "dd", "if=/dev/zero", "of=\(shop.path("app.db"))", "bs=4096", "seek=12", "count=1", "conv=notrunc",
            "status=none",
        ])
        try #require(try Shell.run(["sqlite3", shop.path("app.db"), "SELECT sum(length(x)) FROM t"]).status != 0)
        try shop.pack("2.0.0", [.shared(Self.two + "CREATE TABLE more(x);", rules)])
        let refused = try shop.apply("2.0.0")
        #expect(refused.status == 3 && refused.errors.contains("--accept-unpreserved"), "\(refused)")
        let ended = try shop.apply("2.0.0", "--accept-unpreserved")
        #expect(ended.status == 0, "\(ended)")
        #expect(try shop.read("app.db", "SELECT x FROM note") == "NOTE\n")
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT x FROM note") == "NOTE\n")
    }

    @Test func `the first install is refused if the rows to preserve cannot be read`() throws {
        try makeDamaged(shop.path("app.db"))
        try shop.pack("1.0.0", [.shared(Self.two, [["table": "note"], ["table": "t"]])])
        #expect(try shop.plan("1.0.0").status == 3)
        let ended = try shop.apply("1.0.0")
        #expect(ended.status == 3, "\(ended.output)")
        #expect(ended.errors.contains("--accept-unpreserved"), "\(ended.errors)")
        #expect(try shop.version() == nil)
        #expect(try shop.read("app.db", "SELECT x FROM note") == "NOTE\n")
    }

    @Test func `a first install with the operator's consent carries the rows of the readable tables`() throws {
        try makeDamaged(shop.path("app.db"))
        try shop.pack("1.0.0", [.shared(Self.two, [["table": "note"], ["table": "t"]])])
        let result = try Shop.last(shop.apply("1.0.0", "--accept-unpreserved", "--json"))
        let counts = Counts.inResult(result, "app")
        #expect(counts["note"] == Counts(carried: 1))
        #expect(counts["t"]?.kept ?? 0 > 0, "\(counts)")
        #expect(try shop.read("app.db", "SELECT x FROM note; SELECT count(*) FROM t") == "NOTE\n0\n")
        #expect(try shop.foreign("app.db", "SELECT x FROM note") == "NOTE\n")
    }

    @Test func `replace is refused if rows to preserve cannot be read, and carries over readable rows`() throws {
        let scratch = try Scratch()
        try makeDamaged(scratch.path("app.db"))
        try scratch.must("sqlite3 new.db '\(Self.two)'")
        for more in ["--dry-run", ""] {
            let ended: Shell.Ended = try scratch.run(
                "moult replace app.db new.db --preserve note --preserve t \(more)")
            #expect(ended.status == 3, "\(ended.output)")
            #expect(
                ended.errors.contains("--preserve t cannot select rows: database disk image is malformed"),
                "\(ended.errors)")
        }
        try scratch.must("moult replace app.db new.db --preserve note")
        let note: String = try scratch.must("sqlite3 app.db 'SELECT x FROM note'")
        #expect(note == "NOTE\n")
    }

    // MARK: counts

    @Test func `a row that is carried over when a file is taken over is not also counted as kept`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE t(id INTEGER PRIMARY KEY, x);", name: "app")])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t VALUES(1, 'ONE'), (5, 'FIVE'), (6, 'SIX')")
        try shop.pack(
            "2.0.0",
            [.shared("CREATE TABLE t(id INTEGER PRIMARY KEY, x, y);", [["table": "t", "where": "id > 1"]])])
        let result = try Shop.last(shop.apply("2.0.0", "--take-over", "app", "--json"))
        #expect(Counts.inResult(result, "app") == ["t": Counts(carried: 2, kept: 1)])
    }

    @Test func `rows of a file from before moult that no condition can select are counted`() throws {
        try shop.sql("app.db", "CREATE TABLE note(t); INSERT INTO note VALUES('MINE')")
        try shop.pack("1.0.0", [.shared("CREATE TABLE note(t, own);", [["table": "note", "where": "own = 1"]])])
        let result = try Shop.last(shop.apply("1.0.0", "--json"))
        #expect(Counts.inResult(result, "app") == ["note": Counts(kept: 1)])
    }
}
