import MoultBasics
import MoultSQLite
import TestSupport
import Testing

@Suite struct HealthTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func `a sound database has no findings`() throws {
        let path = try scratch.database(
            "a.db", "CREATE TABLE t (a, b); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1, 2)")
        let connection = try Connection(path: path, access: .readOnly)
        #expect(try connection.quickCheck() == [])
        #expect(try connection.integrityCheck() == [])
        #expect(try connection.foreignKeyCheck() == [])
    }

    /// The index was created on `a`, but the schema says that it is on `b`. Only a lookup of each row in the index
    /// detects this damage.
    @Test func `only the integrity check finds a row that is missing from an index`() throws {
        let path = try scratch.database(
            "a.db",
            """
            CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2); CREATE INDEX i ON t (a);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (b)' WHERE name = 'i';
            """)
        let connection = try Connection(path: path, access: .readOnly)
        #expect(try connection.quickCheck() == [])
        #expect(try connection.integrityCheck() == ["row 1 missing from index i"])
    }

    @Test func `a damaged page is reported`() throws {
        let path = try scratch.database(
            "a.db", "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(100)), (zeroblob(100))")
        // Page 2 is the only leaf of the table; the number of its cells is at byte 3.
        try scratch.damage("a.db", at: 4096 + 3, with: [0xff, 0xff])
        let findings = try Connection(path: path, access: .readOnly).quickCheck()
        #expect(findings.contains { $0.contains("btreeInitPage() returns error code 11") })
    }

    @Test func `two tables with the same root page are reported`() throws {
        let path = try scratch.database(
            "a.db",
            """
            CREATE TABLE t (a); CREATE TABLE u (a);
            PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'u';
            """)
        let findings = try Connection(path: path, access: .readOnly).quickCheck()
        #expect(findings.contains { $0.contains("2nd reference to page 2") })
        #expect(findings.contains { $0.contains("Page 3 is never used") })
    }

    @Test func `a file that is not a database is reported`() throws {
        let path = try scratch.file("a.db", Array(repeating: UInt8(ascii: "x"), count: 4096))
        #expect(try Connection(path: path, access: .readOnly).quickCheck() == ["file is not a database"])
    }

    @Test func `rows whose parent is missing are reported`() throws {
        let path = try scratch.database(
            "a.db",
            """
            CREATE TABLE food (pk INTEGER PRIMARY KEY);
            CREATE TABLE meal (food REFERENCES food); INSERT INTO meal VALUES (7), (8);
            CREATE TABLE note (food REFERENCES food, id PRIMARY KEY) WITHOUT ROWID; INSERT INTO note VALUES (9, 1);
            """)
        let connection = try Connection(path: path, access: .readOnly)
        #expect(
            try connection.foreignKeyCheck().sorted() == [
                "a row of table note refers to a row of food that does not exist",
                "row 1 of table meal refers to a row of food that does not exist",
                "row 2 of table meal refers to a row of food that does not exist",
            ])
        #expect(try connection.foreignKeyCheck(limit: 2).count == 2)
    }

    /// SQLite 3.40 reports NULL in every row of `n`, because the column is declared before a column of the key.
    @Test func `a table WITHOUT ROWID with a column before its key is damaged only if it has NULL`() throws {
        let table =
            "CREATE TABLE b(a INTEGER NOT NULL, n INTEGER NOT NULL, d INTEGER NOT NULL, PRIMARY KEY(a, d)) WITHOUT ROWID"
        let sound = try scratch.database(
            "sound.db",
            "\(table); INSERT INTO b WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300) SELECT i, i, i FROM c"
        )
        let connection = try Connection(path: sound, access: .readOnly)
        #expect(try connection.quickCheck() == [])
        #expect(try connection.integrityCheck() == [])
        #expect(try connection.fullCheck() == [])
        let damaged = try scratch.database(
            "damaged.db",
            """
            CREATE TABLE b(a, n, d, PRIMARY KEY(a, d)) WITHOUT ROWID; INSERT INTO b VALUES(1, NULL, 3);
            PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '\(table)';
            """)
        #expect(try Connection(path: damaged, access: .readOnly).quickCheck() == ["NULL value in b.n"])
    }

    /// SQLite does not load the CHECK constraints of a database that it cannot write to.
    @Test func `check constraints are checked only with write access`() throws {
        let path = try scratch.database(
            "a.db",
            "CREATE TABLE t (a CHECK (a > 0)); PRAGMA ignore_check_constraints = 1; INSERT INTO t VALUES (-1)")
        #expect(try Connection(path: path, access: .readOnly).quickCheck() == [])
        #expect(try Connection(path: path, access: .readWrite).quickCheck() == ["CHECK constraint failed in t"])
    }
}
