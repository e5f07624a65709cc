import MoultBasics
import MoultFiles
import MoultSQLite
import TestSupport
import Testing

/// The fast check finds the same problems as SQLite in databases whose tables and indexes differ in various ways.
@Suite struct FullCheckTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Rows with every kind of value. In some columns, the order of the values differs from the order of insertion.
    private static let rows = """
        INSERT INTO t VALUES (1, 'b', 2.0), (2, 'A', 2.5), (3, 'a ', NULL), (4, x'00ff', 9007199254740993),
          (5, 'a' || char(0) || 'z', -1e300), (6, NULL, 7), (7, 'Z', 0.0), (8, 'ä', 9.0e18), (9, '', 1), (10, 'b', 3);
        """

    /// Indexes that the fast check compares, and indexes that it leaves to SQLite.
    static let indexes = [
        "CREATE INDEX i ON t (b)", "CREATE INDEX i ON t (b DESC, c)", "CREATE INDEX i ON t (b COLLATE NOCASE, c)",
        "CREATE INDEX i ON t (b COLLATE RTRIM)", "CREATE INDEX i ON t (c)", "CREATE UNIQUE INDEX i ON t (b, c)",
        "CREATE INDEX i ON t (c, a)", "CREATE INDEX i ON t (b) WHERE c > 1", "CREATE INDEX i ON t (upper(b))",
        "CREATE INDEX \"a \"\"b\"\"\" ON t (b)",
    ]

    private static let table = "CREATE TABLE t (a INTEGER PRIMARY KEY, b, c REAL);"

    @Test(arguments: indexes) func `a sound index has no findings`(_ index: String) throws {
        let path = try scratch.database("a.db", "\(Self.table) \(Self.rows) \(index);")
        let connection = try Connection(path: path, access: .readOnly)
        #expect(try connection.integrityCheck() == [])
        #expect(try connection.fullCheck() == [])
    }

    /// The table is changed while its index is hidden, so that the index lacks entries, has too many, or has different
    /// ones.
    @Test(
        arguments: indexes.dropLast(),
        [
            "INSERT INTO t VALUES (50, 'new', 2)", "DELETE FROM t WHERE a = 2",
            "UPDATE t SET b = 'other', c = 99 WHERE a = 8",
            "UPDATE t SET b = 'B', c = 2.25 WHERE a = 2",
            "DELETE FROM t WHERE a = 10; INSERT INTO t VALUES (11, 'b', 3)",
        ])
    func `an index that differs from its table is detected`(_ index: String, _ change: String) throws {
        let path = try scratch.database(
            "a.db",
            """
            \(Self.table) \(Self.rows) \(index);
            CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'i';
            PRAGMA writable_schema = ON;
            DELETE FROM sqlite_schema WHERE name = 'i';
            PRAGMA writable_schema = RESET;
            \(change);
            PRAGMA writable_schema = ON;
            INSERT INTO sqlite_schema SELECT * FROM kept;
            PRAGMA writable_schema = RESET;
            DROP TABLE kept;
            """)
        let connection = try Connection(path: path, access: .readOnly)
        let known = try connection.integrityCheck()
        #expect(!known.isEmpty, "SQLite reports no damage")
        #expect(try connection.quickCheck() == [])
        #expect(try connection.fullCheck() == known)
    }

    /// The schema declares the index unique, or with a different order or collation than that of its entries.
    @Test(arguments: [
        ("CREATE INDEX i ON t (b)", "CREATE UNIQUE INDEX i ON t (b)"),
        ("CREATE INDEX i ON t (b)", "CREATE INDEX i ON t (b DESC)"),
        ("CREATE INDEX i ON t (b)", "CREATE INDEX i ON t (c)"),
        ("CREATE INDEX i ON t (b)", "CREATE INDEX i ON t (b COLLATE NOCASE)"),
        ("CREATE INDEX i ON t (b COLLATE NOCASE)", "CREATE INDEX i ON t (b)"),
        ("CREATE INDEX i ON t (c)", "CREATE INDEX i ON t (c, b)"),
        ("CREATE INDEX i ON t (b) WHERE c > 1", "CREATE INDEX i ON t (b)"),
        ("CREATE INDEX i ON t (b)", "CREATE INDEX i ON t (b) WHERE c > 1"),
    ])
    func `an index with a different definition is detected`(made: String, says: String) throws {
        let path = try scratch.database(
            "a.db",
            """
            \(Self.table) \(Self.rows) \(made);
            PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '\(says)' WHERE name = 'i';
            """)
        let connection = try Connection(path: path, access: .readOnly)
        let known = try connection.integrityCheck()
        #expect(!known.isEmpty, "SQLite reports no damage")
        #expect(try connection.fullCheck() == known)
    }

    @Test(arguments: [
        "CREATE TABLE t (a NOT NULL, b)", "CREATE TABLE t (a CHECK (a > 0), b)", "CREATE TABLE t (a INTEGER, b) STRICT",
    ])
    func `a row that violates the definition of its table is detected`(_ table: String) throws {
        let path = try scratch.database(
            "a.db",
            """
            CREATE TABLE t (a, b); INSERT INTO t VALUES (NULL, 1), (-1, 2), ('x', 3); CREATE INDEX i ON t (b);
            PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '\(table.replacing(" b)", with: " b ANY)"))' WHERE name = 't';
            """)
        let connection = try Connection(path: path, access: .readWrite)
        let known = try connection.integrityCheck()
        #expect(!known.isEmpty, "SQLite reports no damage")
        #expect(try connection.fullCheck() == known)
    }

    /// Two entries of a leaf are swapped: lookups do not find the entries, but the sums are the same.
    @Test func `index entries in the wrong order are detected`() throws {
        let path = try scratch.database(
            "a.db",
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z'); CREATE INDEX i ON t (b)"
        )
        // Page 3 is the only leaf of the index. Its header has 8 bytes, followed by 2 bytes for the offset of each
        // cell.
        let page = Array(try #require(try Files.read(path, limit: 1 << 20))[8192..<8192 + 16])
        try scratch.damage("a.db", at: 8192 + 8, with: [page[10], page[11], page[8], page[9]])
        let connection = try Connection(path: path, access: .readOnly)
        let known = try connection.integrityCheck()
        #expect(!known.isEmpty, "SQLite reports no damage")
        #expect(try connection.quickCheck() == [])
        #expect(try connection.fullCheck() == known)
    }

    @Test(arguments: [
        "CREATE TABLE t (a PRIMARY KEY, b UNIQUE) WITHOUT ROWID; INSERT INTO t VALUES (1, 2), (2, 3)",
        "CREATE TABLE t (rowid, _rowid_, oid, b); CREATE INDEX i ON t (b); INSERT INTO t VALUES (1, 2, 3, 4)",
        "CREATE TABLE t (a, b AS (a + 1), c AS (a + 2) STORED); CREATE INDEX i ON t (b); CREATE INDEX j ON t (c); INSERT INTO t VALUES (1)",
        "CREATE TABLE \"a table\" (\"a column\" UNIQUE, b); INSERT INTO \"a table\" VALUES (NULL, 1), (NULL, 2), (3, 3)",
        "PRAGMA encoding = 'UTF-16'; CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (char(0x10000)), (char(0xffff))",
        "CREATE VIRTUAL TABLE t USING fts5(a); INSERT INTO t VALUES ('words')",
    ])
    func `the full check reports nothing for sound WITHOUT ROWID, generated-column, UTF-16 and virtual tables`(
        _ sql: String
    ) throws {
        let path = try scratch.database("a.db", sql)
        let connection = try Connection(path: path, access: .readOnly)
        #expect(try connection.fullCheck() == [])
    }
}
