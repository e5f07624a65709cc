import MoultBasics
import MoultSQLite
import TestSupport
import Testing

@testable import MoultRows

@Suite struct AppContentTests {
    private static let schema = """
        CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, own INT DEFAULT 0);
        CREATE TABLE word(text TEXT PRIMARY KEY, n INT);
        CREATE TABLE pair(a, b, c, PRIMARY KEY(a, b)) WITHOUT ROWID;
        CREATE TABLE plain(x);
        INSERT INTO item VALUES(1,'a',0),(2,'b',0),(3,'c',0);
        INSERT INTO word VALUES('x',1),('y',2); INSERT INTO pair VALUES(1,'p',0),(2,'q',0);
        INSERT INTO plain VALUES(1),(2);
        """

    private func content(
        _ sql: String, selected: [SQLName: [String?]] = [:], schema: String = schema
    ) throws -> AppContent {
        let test = try TransferCase(old: schema + sql, new: schema)
        return try AppContent(of: test.old, against: test.new, selected: selected, ignoring: ["moult_rejected"])
    }

    @Test(arguments: [
        "", "DELETE FROM item WHERE id = 2; DELETE FROM pair; VACUUM", "PRAGMA user_version = 5",
        "CREATE TABLE moult_rejected(row); INSERT INTO moult_rejected VALUES(1)",
        "REPLACE INTO word VALUES('x',1)", "UPDATE item SET name = 'z'; UPDATE item SET name = char(96 + id)",
        "PRAGMA journal_mode = WAL; UPDATE item SET own = 0",
    ])
    func `shipped content does not count as the app's content`(_ sql: String) throws {
        #expect(try content(sql).isEmpty)
    }

    @Test func `rows that are not selected are counted`() throws {
        let content = try content(
            """
            INSERT INTO item VALUES(4,'mine',1),(5,'other',0); UPDATE item SET name = 'B' WHERE id = 2;
            UPDATE item SET own = 1 WHERE id = 3; INSERT INTO word VALUES('z',1); UPDATE word SET n = 9 WHERE text = 'x';
            INSERT INTO pair VALUES(1,'r',0); UPDATE pair SET c = 1 WHERE a = 2; INSERT INTO plain VALUES(2);
            """, selected: ["Item": ["own = 1"], "pair": ["b = 'r'", "a = 7"]])
        #expect(content.rows == ["item": 2, "word": 2, "pair": 1, "plain": 1])
        #expect(content.tables.isEmpty && content.items.isEmpty && content.columns.isEmpty)
    }

    @Test func `rows of a table that is selected as a whole are not counted`() throws {
        #expect(try content("INSERT INTO plain VALUES(9)", selected: ["plain": [nil]]).isEmpty)
    }

    @Test func `a value whose storage class changed counts as the app's content`() throws {
        #expect(try content("UPDATE plain SET x = '2' WHERE x = 2").rows == ["plain": 1])
        #expect(try content("UPDATE plain SET x = 2.0 WHERE x = 2").rows == ["plain": 1])
    }

    @Test func `a row with a NULL in its key is the row at its place`() throws {
        let schema = "CREATE TABLE word(text TEXT PRIMARY KEY, n INT); INSERT INTO word VALUES(NULL, 1), (NULL, 2);"
        #expect(try content("INSERT INTO word VALUES(NULL, 1), (NULL, 2)", schema: schema).rows == ["word": 2])
        #expect(try content("UPDATE word SET n = 1 WHERE n = 2", schema: schema).rows == ["word": 1])
    }

    @Test func `a row counts if the app has set a column that it has added`() throws {
        let content = try content(
            """
            ALTER TABLE item ADD COLUMN note TEXT DEFAULT 5; ALTER TABLE item ADD COLUMN seen;
            UPDATE item SET note = 'x' WHERE id = 1; UPDATE item SET name = 'B', seen = 1 WHERE id = 2;
            INSERT INTO item(id, own, note) VALUES(7, 1, 'mine'), (8, 0, 'mine');
            ALTER TABLE word ADD COLUMN note; UPDATE word SET n = 5 WHERE text = 'y';
            """, selected: ["item": ["own = 1"]])
        #expect(content.rows == ["item": 3, "word": 1])
        #expect(content.columns == ["item": ["note", "seen"], "word": ["note"]])
    }

    /// SQLite stores many rows of an R-tree in one row of a table.
    @Test func `each row of an R-tree counts once`() throws {
        let schema =
            "CREATE VIRTUAL TABLE area USING rtree(id, a, b, +name); INSERT INTO area VALUES(1, 0, 1, 'x'), (2, 5, 6, 'y');"
        let content = try content(
            "UPDATE area SET a = -1; INSERT INTO area VALUES(3, 1, 2, 'z'), (4, 1, 2, 'z'); DELETE FROM area WHERE id = 2;",
            schema: schema)
        #expect(content.rows == ["area": 3])
        #expect(try self.content("UPDATE area SET name = 'w' WHERE id = 2", schema: schema).rows == ["area": 1])
        #expect(try self.content("DELETE FROM area WHERE id = 2", schema: schema).isEmpty)
        #expect(try self.content("", schema: "").isEmpty)
        let added = try self.content(schema, schema: "CREATE TABLE t(x);")
        #expect(added.tables == ["area": 2])
    }

    @Test func `objects created by the app are listed`() throws {
        let content = try content(
            """
            CREATE TABLE mine(a); INSERT INTO mine VALUES(1),(2); CREATE INDEX i ON item(name); CREATE VIEW v AS SELECT 1;
            CREATE TRIGGER r AFTER INSERT ON item BEGIN SELECT 1; END; ALTER TABLE word ADD COLUMN note DEFAULT 'n';
            CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f VALUES('x');
            """)
        #expect(content.tables == ["mine": 2, "f": 1])
        #expect(content.items.map { "\($0.kind) \($0.name)" } == ["index i", "trigger r", "view v"])
        #expect(content.columns == ["word": ["note"]])
        #expect(content.rows.isEmpty)
    }

    @Test
    func `rows of a full-text table count as the app's content, and rows of an index over another table do not`() throws
    {
        let schema = """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE VIRTUAL TABLE over USING fts5(a, content=t, content_rowid=id);
            CREATE VIRTUAL TABLE own USING fts5(a); INSERT INTO own VALUES('x');
            """
        let content = try content(
            "INSERT INTO over(rowid, a) VALUES(1,'x'); INSERT INTO own VALUES('y'),('z')", schema: schema)
        #expect(content.rows == ["own": 2])
    }

    @Test func `long rows are compared completely`() throws {
        let schema =
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1, zeroblob(20000)),(2, zeroblob(9000));"
        #expect(try content("", schema: schema).isEmpty)
        #expect(
            try content("UPDATE t SET a = CAST(zeroblob(19999) || 'x' AS BLOB) WHERE id = 1", schema: schema).rows
                == ["t": 1])
    }
}

@Suite struct MigrationLossTests {
    private static let schema = """
        CREATE TABLE meal(id INTEGER PRIMARY KEY, day TEXT, what TEXT, note);
        CREATE TABLE tag(name TEXT PRIMARY KEY, n INT); CREATE TABLE plain(x);
        INSERT INTO meal VALUES(1,'mon','soup',NULL),(2,'tue','rice','n'); INSERT INTO tag VALUES('a',1),('b',2);
        INSERT INTO plain VALUES(1),(2);
        """

    private func loss(_ migration: String) throws -> [MigrationLoss.Table] {
        let test = try TransferCase(old: Self.schema, new: Self.schema + migration)
        return try MigrationLoss(from: test.old, to: test.new).tables
    }

    @Test(arguments: [
        "", "ALTER TABLE meal ADD COLUMN rating INT DEFAULT 3; UPDATE meal SET rating = 5",
        "ALTER TABLE meal RENAME COLUMN note TO remark", "ALTER TABLE meal RENAME TO dinner",
        "INSERT INTO plain VALUES(3); DROP INDEX IF EXISTS x; CREATE INDEX y ON meal(day)",
        """
        CREATE TABLE t2(n INT, name TEXT PRIMARY KEY COLLATE NOCASE, extra); INSERT INTO t2 SELECT n, name, 1 FROM tag
        ORDER BY name DESC; DROP TABLE tag; ALTER TABLE t2 RENAME TO tag
        """,
        "CREATE TABLE t2(name TEXT PRIMARY KEY, n INT) WITHOUT ROWID; INSERT INTO t2 SELECT * FROM tag; DROP TABLE tag; ALTER TABLE t2 RENAME TO tag",
        "UPDATE meal SET note = note",
    ])
    func `a migration that keeps every value loses nothing`(_ migration: String) throws {
        #expect(try loss(migration) == [])
    }

    @Test func `changed and dropped values are counted`() throws {
        #expect(
            try loss("UPDATE meal SET what = NULL; ALTER TABLE meal DROP COLUMN note; DELETE FROM meal WHERE id = 1")
                == [.init(name: "meal", rowsCut: 1, rowsDropped: 1)])
        #expect(
            try loss("UPDATE tag SET n = CAST(n AS TEXT); UPDATE tag SET name = 'c' WHERE n = 2; DROP TABLE plain") == [
                .init(name: "plain", rowsDropped: 2, isDropped: true), .init(name: "tag", rowsDropped: 1),
            ])
        #expect(
            try loss("ALTER TABLE meal DROP COLUMN note; ALTER TABLE meal ADD COLUMN mark INT")
                == [.init(name: "meal", rowsCut: 1)])
        #expect(try loss("UPDATE plain SET x = CAST(x AS TEXT)") == [.init(name: "plain", rowsChanged: 2)])
    }

    @Test func `a table that was renamed and changed counts as dropped`() throws {
        #expect(
            try loss("ALTER TABLE plain RENAME TO simple; UPDATE simple SET x = 7 WHERE x = 1")
                == [.init(name: "plain", rowsDropped: 2, isDropped: true)])
    }

    @Test func `changes that are not committed yet are counted`() throws {
        let test = try TransferCase(old: Self.schema, new: Self.schema)
        try test.new.execute("BEGIN IMMEDIATE; UPDATE plain SET x = 5 WHERE x = 1")
        let loss = try MigrationLoss(from: test.old, to: test.new)
        #expect(loss.tables == [.init(name: "plain", rowsChanged: 1)])
    }
}
