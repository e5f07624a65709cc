import MoultBasics
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

/// A database from elsewhere is untrusted: SQL in the database must not access anything else, and a read of the
/// database must end.
@Suite struct ConnectionGuardTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func guarded(
        _ sql: String, access: Access = .immutable, deadline: Double = 30
    ) throws -> Connection {
        try Connection.openGuarded(path: scratch.database("a.db", sql), access: access, deadline: deadline)
    }

    @Test func `golden queries run under the guard`() throws {
        let connection = try guarded(
            """
            CREATE TABLE food (pk INTEGER PRIMARY KEY, name TEXT CHECK (length(name) > 0), half REAL AS (pk / 2.0));
            INSERT INTO food (name) VALUES ('bread'), ('cheese'), ('quince');
            CREATE VIEW long AS SELECT upper(name) AS name FROM food WHERE length(name) > 5;
            CREATE VIRTUAL TABLE words USING fts5 (body); INSERT INTO words VALUES ('bread and cheese'), ('tea');
            CREATE VIRTUAL TABLE place USING rtree (id, west, east); INSERT INTO place VALUES (1, 2, 4);
            """)
        #expect(try connection.int("SELECT count(*) FROM food") == 3)
        #expect(try connection.query("SELECT name FROM long") == [[.text("CHEESE")], [.text("QUINCE")]])
        #expect(try connection.scalar("SELECT snippet(words, 0, '[', ']', '', 9) FROM words('tea')") == .text("[tea]"))
        #expect(try connection.int("SELECT id FROM place WHERE west < 3 AND east > 3") == 1)
        #expect(
            try connection.int(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n")
                == 45)
        #expect(try connection.int("SELECT row_number() OVER (ORDER BY name DESC) FROM food LIMIT 1") == 1)
        #expect(try connection.quickCheck() == [])
        #expect(try connection.integrityCheck() == [])
        #expect(try connection.foreignKeyCheck() == [])
    }

    @Test(arguments: [
        ("INSERT INTO t VALUES (1)", "INSERT into t"), ("DELETE FROM t", "DELETE from t"),
        ("UPDATE t SET a = 1", "UPDATE of t"), ("CREATE TABLE u (a)", "INSERT into sqlite_master"),
        ("CREATE TEMP TABLE u (a)", "INSERT into sqlite_temp_master"),
        ("PRAGMA journal_mode = WAL", "PRAGMA journal_mode = WAL"),
        ("PRAGMA trusted_schema = 1", "PRAGMA trusted_schema = 1"),
        ("PRAGMA user_version = 9", "PRAGMA user_version = 9"), ("VACUUM", "ATTACH"),
        ("VACUUM INTO '/tmp/moult-stolen.db'", "ATTACH"), ("ATTACH '/tmp/moult-stolen.db' AS x", "ATTACH"),
        ("DETACH main", "DETACH"), ("SELECT load_extension('x')", "the function load_extension"),
    ])
    func `statements that do more than read are denied, and the error names the action`(
        _ sql: String, _ what: String
    ) throws {
        let connection = try Connection.openGuarded(
            path: scratch.database("a.db", "CREATE TABLE t (a)"), access: .readWrite, deadline: 30)
        let error = #expect(throws: MoultError.self) { try connection.execute(sql) }
        #expect(error?.code == .guarded)
        #expect(error?.outcome == .refused)
        #expect(error?.why == "only reading is allowed, and this statement needs \(what)")
    }

    /// Otherwise, SQL could choose an address that SQLite calls. This also applies to build scripts, which run without
    /// a guard.
    @Test func `a connection does not let SQL register a tokenizer by its address`() throws {
        let connection = try Connection.inMemory()
        let error = #expect(throws: MoultError.self) {
            _ = try connection.query("SELECT fts3_tokenizer('evil', x'0010ADDE00000000')")
        }
        #expect(error?.why?.contains("fts3tokenize disabled") == true, "\(String(describing: error))")
        // SQL cannot read the address of a tokenizer either.
        #expect(try connection.scalar("SELECT fts3_tokenizer('simple')") == .null)
        try connection.execute("CREATE VIRTUAL TABLE f USING fts3(x, tokenize=porter); INSERT INTO f VALUES('teas')")
        #expect(try connection.int("SELECT count(*) FROM f WHERE f MATCH 'tea'") == 1)
    }

    /// The exceptions for functions that read R-trees must not allow writes.
    @Test(arguments: ["DELETE FROM my_node", "UPDATE my_node SET a = 2", "INSERT INTO my_node VALUES (3)"])
    func `tables named like those of an R-tree cannot be written to`(_ sql: String) throws {
        let path = try scratch.database("a.db", "CREATE TABLE my_node (a); INSERT INTO my_node VALUES (1)")
        let connection = try Connection.openGuarded(path: path, access: .readWrite, deadline: 30)
        let error = #expect(throws: MoultError.self) { try connection.execute(sql) }
        #expect(error?.sqlite?.resultCode == .readOnly)
        #expect(try connection.query("SELECT a FROM my_node") == [[.integer(1)]])
    }

    @Test func `the guard allows the program to attach databases, and denies it to SQL`() throws {
        let connection = try guarded("CREATE TABLE t (a)")
        try connection.attach(
            scratch.database("b.db", "CREATE TABLE u (a); INSERT INTO u VALUES (5)"), as: "b", access: .immutable)
        #expect(try connection.int("SELECT a FROM b.u") == 5)
        try connection.detach("b")
        #expect(throws: MoultError.self) { try connection.execute("ATTACH ':memory:' AS c") }
    }

    @Test func `an endless query is stopped`() throws {
        let connection = try guarded("CREATE TABLE t (a)", deadline: 0.2)
        let error = #expect(throws: MoultError.self) {
            _ = try connection.int(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
        }
        #expect(error?.code == .deadline)
        #expect(error?.what == "a statement on \(scratch.path("a.db")) was stopped after 0.2 s")
        #expect(error?.sqlite?.resultCode == .interrupt)
    }

    /// In a small file, even the check of the structure can take minutes.
    @Test func `a CHECK constraint cannot keep a check busy beyond the deadline`() throws {
        let connection = try guarded(
            """
            CREATE TABLE t (a CHECK (length(replace(hex(zeroblob(1000000)), '0', a)) > 0));
            PRAGMA ignore_check_constraints = 1;
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
            INSERT INTO t SELECT 'ab' FROM n;
            """, access: .readWrite, deadline: 0.3)
        let start = ContinuousClock.now
        let error = #expect(throws: MoultError.self) { _ = try connection.quickCheck() }
        #expect(error?.code == .deadline)
        #expect(ContinuousClock.now - start < .seconds(30))
    }

    @Test func `the guard refuses a huge value`() throws {
        let connection = try guarded("CREATE VIEW v AS SELECT hex(zeroblob(900000000)) AS a")
        let error = #expect(throws: MoultError.self) { _ = try connection.query("SELECT a FROM v") }
        #expect(error?.sqlite?.resultCode == .tooBig)
    }

    @Test(arguments: [0, 1, 4095, 4096 * 3])
    func `a file whose size does not match its pages is refused before the first query`(_ size: Int) throws {
        let path = try scratch.database("a.db", "CREATE TABLE t (a)")
        #expect(truncate(path, size) == 0)
        let error = #expect(throws: MoultError.self) {
            _ = try Connection.openGuarded(path: path, access: .immutable, deadline: 30)
        }
        #expect(error?.code == .databaseCorrupt)
        #expect(error?.what.contains(path) == true)
    }
}
