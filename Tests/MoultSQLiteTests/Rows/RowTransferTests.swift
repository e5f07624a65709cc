import MoultBasics
import MoultSQLite
import TestSupport
import Testing

@testable import MoultRows

/// An old and a new database for one test.
struct TransferCase {
    let scratch: Scratch
    let old: Connection
    let new: Connection

    init(old: String, new: String) throws {
        scratch = try Scratch()
        // Hundreds of cases must not wait for the disk.
        let fast = "PRAGMA synchronous = OFF; "
        self.old = try Connection(path: scratch.database("old.db", fast + old), access: .readWrite)
        self.new = try Connection(path: scratch.database("new.db", fast + new), access: .readWrite)
        try self.new.execute(fast)
    }

    @discardableResult
    func run(_ rules: RowRule..., label: String = "2.0.0") throws -> [TableOutcome] {
        try new.transaction(.immediate) {
            try RowTransfer(rules: rules, rejects: RejectTable(label: label)).run(from: old, to: new)
        }
    }

    /// Returns the rows of a query on the new database as SQL literals, in the order in which SQLite returns them.
    func rows(_ sql: String) throws -> [String] {
        try new.query(sql).map { $0.map(\.description).joined(separator: ",") }
    }

    func rejects() throws -> [String] { try rows("SELECT \"table\", reason, row FROM moult_rejected") }
}

@Suite struct RowTransferTests {
    @Test func `a selected row is carried and other rows are not`() throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(a TEXT PRIMARY KEY, own INT); INSERT INTO t VALUES('x',1),('y',0)",
            new: "CREATE TABLE t(a TEXT PRIMARY KEY, own INT); INSERT INTO t VALUES('z',0)")
        let outcome = try test.run(RowRule(table: "T", conditions: ["own = 1"]))
        #expect(outcome == [TableOutcome(table: "T", selected: 1, carried: 1)])
        #expect(try test.rows("SELECT a FROM t ORDER BY a") == ["'x'", "'z'"])
    }

    @Test func `a row is selected if one of several conditions holds`() throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(a); INSERT INTO t VALUES(1),(2),(3)", new: "CREATE TABLE t(a)")
        let outcome = try test.run(RowRule(table: "t", conditions: ["a = 1 -- one", "a = 3"]))
        #expect(outcome == [TableOutcome(table: "t", selected: 2, carried: 2)])
    }

    @Test func `a row with a value whose type would change is rejected`() throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT); INSERT INTO t VALUES(1,'007'),(2,'x')",
            new: "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER)")
        let outcome = try test.run(RowRule(table: "t", onReject: .record))
        #expect(outcome == [TableOutcome(table: "t", selected: 2, carried: 1, rejected: 1)])
        #expect(try test.rows("SELECT * FROM t") == ["2,'x'"])
        #expect(
            try test.rejects() == [
                #"'t','the value of column a would change from text to integer','{"id":1,"a":"007"}'"#
            ])
    }

    @Test(arguments: [
        ("a TEXT", "'007'", "a INTEGER", ""), ("a TEXT", "'7'", "a INTEGER", ""), ("a", "7", "a TEXT", ""),
        ("a TEXT", "'1.10'", "a REAL", ""), ("a", "9007199254740993", "a REAL", ""),
        ("a TEXT", "'007'", "a INTEGER", "STRICT"),
    ])
    func `by default, a value that the new column would change stops the transfer`(
        old: String, value: String, new: String, options: String
    ) throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(id INTEGER PRIMARY KEY, \(old)); INSERT INTO t VALUES(1,\(value))",
            new: "CREATE TABLE t(id INTEGER PRIMARY KEY, \(new)) \(options)")
        let error = try #require(throws: MoultError.self) { try test.run(RowRule(table: "t")) }
        #expect(error.code == .rowRejected)
        #expect(try test.rows("SELECT * FROM t") == [])
    }

    @Test func `by default, a row that does not fit stops the transfer and nothing changes`() throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1,1),(2,NULL)",
            new: "CREATE TABLE t(id INTEGER PRIMARY KEY, a NOT NULL)")
        let error = try #require(throws: MoultError.self) { try test.run(RowRule(table: "t")) }
        #expect(error.code == .rowRejected)
        #expect(try test.rows("SELECT * FROM t") == [])
    }

    @Test(arguments: ["PRIMARY KEY", "UNIQUE"])
    func `rows that collide in the new schema are never lost`(key: String) throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(a TEXT PRIMARY KEY); INSERT INTO t VALUES('Salt'),('salt'),('egg')",
            new: "CREATE TABLE t(a TEXT \(key) COLLATE NOCASE)")
        let error = try #require(throws: MoultError.self) { try test.run(RowRule(table: "t")) }
        #expect(error.code == .rowRejected)
        let outcome = try test.run(RowRule(table: "t", onReject: .record))
        #expect(outcome == [TableOutcome(table: "t", selected: 3, carried: 2, rejected: 1)])
        #expect(try test.rows("SELECT a FROM t ORDER BY a") == ["'egg'", "'Salt'"])
        #expect(try test.rows("SELECT row FROM moult_rejected") == [#"'{"a":"salt"}'"#])
    }

    @Test func `a shipped row that loses a conflict in several releases is recorded once`() throws {
        let scratch = try Scratch()
        let schema = "CREATE TABLE t(a TEXT PRIMARY KEY, b); "
        var old = try Connection(
            path: scratch.database("0.db", schema + "INSERT INTO t VALUES('x','mine')"), access: .readWrite)
        for release in 1...3 {
            let new = try Connection(
                path: scratch.database("\(release).db", schema + "INSERT INTO t VALUES('x','shipped')"),
                access: .readWrite)
            let outcome = try new.transaction(.immediate) {
                try RowTransfer(rules: [RowRule(table: "t")], rejects: RejectTable(label: "\(release).0.0"))
                    .run(from: old, to: new)
            }
            #expect(outcome == [TableOutcome(table: "t", selected: 1, carried: 1, shippedLosers: 1)])
            #expect(
                try new.query("SELECT release, row FROM moult_rejected") == [
                    [.text("1.0.0"), .text(#"{"a":"x","b":"shipped"}"#)]
                ])
            #expect(try new.query("SELECT * FROM t") == [[.text("x"), .text("mine")]])
            old = new
        }
    }

    @Test func `keepNew rejects the carried row, and fail stops the transfer`() throws {
        let schema = "CREATE TABLE t(a TEXT PRIMARY KEY, b); "
        let test = try TransferCase(
            old: schema + "INSERT INTO t VALUES('x',1)", new: schema + "INSERT INTO t VALUES('x',2)")
        let outcome = try test.run(RowRule(table: "t", onConflict: .keepNew))
        #expect(outcome == [TableOutcome(table: "t", selected: 1, rejected: 1)])
        #expect(try test.rows("SELECT * FROM t") == ["'x',2"])
        #expect(try test.rows("SELECT row FROM moult_rejected") == [#"'{"a":"x","b":1}'"#])
        let error = try #require(throws: MoultError.self) { try test.run(RowRule(table: "t", onConflict: .fail)) }
        #expect(error.code == .rowConflict)
    }

    @Test func `an identical row is not a conflict`() throws {
        let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE); INSERT INTO t VALUES(1,'x'),(2,'y')"
        let test = try TransferCase(old: schema, new: schema)
        #expect(
            try test.run(RowRule(table: "t", onConflict: .fail)) == [TableOutcome(table: "t", selected: 2, carried: 2)])
        try test.old.execute("UPDATE t SET a = 1 WHERE id = 1")
        try test.new.execute("UPDATE t SET a = '1' WHERE id = 1")
        let error = try #require(throws: MoultError.self) { try test.run(RowRule(table: "t", onConflict: .fail)) }
        #expect(error.code == .rowConflict)
    }

    @Test func `equal rows without a key are all carried over, and rows of a table with odd names`() throws {
        let schema = #"""
            CREATE TABLE t(a); CREATE TABLE "t""m x"("n a" TEXT, "order" INT, PRIMARY KEY("n a", "order")) WITHOUT ROWID;
            """#
        let test = try TransferCase(
            old: schema + #"INSERT INTO t VALUES(1),(1),(1); INSERT INTO "t""m x" VALUES('mine',1),('mine',2)"#,
            new: schema + "INSERT INTO t VALUES(2)")
        try test.run(RowRule(table: "t"), RowRule(table: #"t"m x"#))
        #expect(try test.rows("SELECT a FROM t ORDER BY a") == ["1", "1", "1", "2"])
        #expect(try test.rows(#"SELECT * FROM "t""m x""#) == ["'mine',1", "'mine',2"])
    }

    @Test func `a row that conflicts with several shipped rows replaces them, and each of them is recorded`() throws {
        let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE); "
        let test = try TransferCase(
            old: schema + "INSERT INTO t VALUES(1,'y')", new: schema + "INSERT INTO t VALUES(1,'x'),(2,'y'),(3,'z')")
        let outcome = try test.run(RowRule(table: "t"))
        #expect(outcome == [TableOutcome(table: "t", selected: 1, carried: 1, shippedLosers: 2)])
        #expect(try test.rows("SELECT * FROM t") == ["1,'y'", "3,'z'"])
        #expect(
            try test.rows("SELECT row FROM moult_rejected") == [#"'{"id":1,"a":"x"}'"#, #"'{"id":2,"a":"y"}'"#])
    }

    @Test(arguments: [
        "CREATE UNIQUE INDEX i ON t(lower(a))", "CREATE UNIQUE INDEX i ON t(a COLLATE NOCASE) WHERE b > 0",
        "CREATE UNIQUE INDEX i ON t(g)",
    ])
    func `conflicts in expression and partial indexes are detected`(_ index: String) throws {
        let schema = "CREATE TABLE t(a, b INT, g AS (lower(a)));"
        let test = try TransferCase(
            old: schema + "INSERT INTO t VALUES('SALT',1)",
            new: schema + index + "; INSERT INTO t(rowid, a, b) VALUES(9,'salt',2)")
        let outcome = try test.run(RowRule(table: "t"))
        #expect(outcome == [TableOutcome(table: "t", selected: 1, carried: 1, shippedLosers: 1)])
        #expect(try test.rows("SELECT a, b FROM t") == ["'SALT',1"])
        #expect(try test.rows("SELECT row FROM moult_rejected") == [#"'{"a":"salt","b":2}'"#])
    }

    @Test func `text is carried over byte for byte, even if it is not valid`() throws {
        let values = """
            (1,CAST(x'C4E4FF' AS TEXT)),(2,CAST(x'6100' AS TEXT)),(3,9e999),(4,-9e999),(5,x''),(6,''),(7,0.1),
            (8,9223372036854775807),(9,1.0),(10,1),(11,NULL),(12,zeroblob(9)),(13,-0.0),
            (14,CAST(x'EDA080' AS TEXT)),(15,-9223372036854775808),(16,9007199254740993),(17,1e-320),(18,'007'),(19,'1e3'),
            (20,x'373037'),(21,'line' || char(13) || char(10) || 'end '),(22,zeroblob(100000)),(23,hex(zeroblob(70000)))
            """
        let test = try TransferCase(
            old: "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES\(values)",
            new: "CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
        #expect(try test.run(RowRule(table: "t")) == [TableOutcome(table: "t", selected: 23, carried: 23)])
        let sql = "SELECT id, typeof(a), hex(a), quote(a) FROM t"
        #expect(try test.old.query(sql) == test.new.query(sql))
    }

    @Test func `a rejected row can be recovered exactly`() throws {
        let test = try TransferCase(
            old: """
                CREATE TABLE t(a,b,c,d,e,f,g,h);
                INSERT INTO t VALUES(CAST(x'C4E4FF' AS TEXT),9e999,-9e999,x'00ff',0.1,3.0,CAST(x'6100' AS TEXT),NULL)
                """, new: "CREATE TABLE t(a,b,c,d,e,f,g,h NOT NULL)")
        #expect(try test.run(RowRule(table: "t", onReject: .record)).first?.rejected == 1)
        #expect(
            try test.rows("SELECT row FROM moult_rejected") == [
                #"'{"a":{"text":"c4e4ff"},"b":{"real":"Infinity"},"c":{"real":"-Infinity"},"d":{"blob":"00ff"},"e":0.1,"f":3.0,"g":{"text":"6100"},"h":null}'"#
            ])
    }

    @Test(arguments: [("UTF-8", "UTF-16le"), ("UTF-16be", "UTF-8"), ("UTF-16le", "UTF-16be")])
    func `text is unchanged in another encoding, or its row is rejected`(_ old: String, _ new: String) throws {
        let test = try TransferCase(
            old: """
                PRAGMA encoding = '\(old)'; CREATE TABLE t(id INTEGER PRIMARY KEY, a);
                INSERT INTO t VALUES(1,'Käse 🧀'),(2,CAST(x'C4E4FF00' AS TEXT)),(3,CAST(x'00d800d8' AS TEXT))
                """, new: "PRAGMA encoding = '\(new)'; CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
        let outcome = try #require(try test.run(RowRule(table: "t", onReject: .record)).first)
        #expect(outcome.carried + outcome.rejected == 3)
        #expect(try test.rows("SELECT a FROM t WHERE id = 1") == ["'Käse 🧀'"])
        // Values that were carried over do not change when they are carried back to the old encoding.
        try test.run()
        let back = try TransferCase(
            old: "PRAGMA encoding = '\(new)'",
            new: "PRAGMA encoding = '\(old)'; CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
        _ = try back.new.transaction(.immediate) {
            try RowTransfer(rules: [RowRule(table: "t")], rejects: RejectTable(label: "3")).run(
                from: test.new, to: back.new)
        }
        let rows = try back.new.query("SELECT id, hex(CAST(a AS BLOB)) FROM t")
        #expect(!rows.isEmpty)
        for row in rows {
            #expect(try test.old.scalar("SELECT hex(CAST(a AS BLOB)) FROM t WHERE id = ?1", [row[0]]) == row[1])
        }
    }

    @Test func `a STRICT table rejects values that it cannot store`() throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1,'x'),(2,5),(3,'5'),(4,NULL)",
            new: "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT) STRICT")
        let outcome = try test.run(RowRule(table: "t", onReject: .record))
        #expect(outcome == [TableOutcome(table: "t", selected: 4, carried: 2, rejected: 2)])
        #expect(try test.rows("SELECT * FROM t") == ["2,5", "4,NULL"])
    }

    @Test func `generated columns are computed and a column that becomes generated counts as lost`() throws {
        let test = try TransferCase(
            old:
                "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, g AS (a + 1) STORED); INSERT INTO t(id, a, b) VALUES(1,2,3)",
            new: "CREATE TABLE t(id INTEGER PRIMARY KEY, b AS (a * 2), a, g AS (a + 5))")
        #expect(try test.run(RowRule(table: "t")) == [TableOutcome(table: "t", selected: 1, carried: 1, incomplete: 1)])
        #expect(try test.rows("SELECT * FROM t") == ["1,4,2,7"])
    }

    @Test func `triggers do not fire, and AUTOINCREMENT counters do not decrease`() throws {
        let schema = """
            CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a); CREATE TABLE log(x);
            CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log VALUES(new.id); END;
            """
        let test = try TransferCase(
            old: schema + "INSERT INTO t VALUES(7,'mine'),(100,'gone'); DELETE FROM t WHERE id = 100",
            new: schema + "INSERT INTO t VALUES(3,'shipped'); DELETE FROM log")
        try test.run(RowRule(table: "t", conditions: ["id = 7"]))
        #expect(try test.rows("SELECT * FROM log") == [])
        #expect(try test.rows("SELECT name, seq FROM sqlite_sequence") == ["'t',100"])
        try test.new.execute("INSERT INTO t VALUES(500,'shipped'); DELETE FROM t; DELETE FROM log")
        try test.run(RowRule(table: "t", conditions: ["id = 7"]))
        #expect(try test.rows("SELECT name, seq FROM sqlite_sequence") == ["'t',500"])
    }

    @Test func `rows that violate a foreign key are rejected, and then the rows that refer to them`() throws {
        let schema = """
            CREATE TABLE a(id INTEGER PRIMARY KEY);
            CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a);
            CREATE TABLE c(k TEXT PRIMARY KEY, b REFERENCES b) WITHOUT ROWID;
            """
        let test = try TransferCase(
            old: schema
                + "INSERT INTO a VALUES(1),(2); INSERT INTO b VALUES(1,1),(2,2); INSERT INTO c VALUES('x',1),('y',2)",
            new: schema + "INSERT INTO a VALUES(1)")
        let outcome = try test.run(RowRule(table: "b", onReject: .record), RowRule(table: "c", onReject: .record))
        #expect(
            outcome == [
                TableOutcome(table: "b", selected: 2, carried: 1, rejected: 1),
                TableOutcome(table: "c", selected: 2, carried: 1, rejected: 1),
            ])
        #expect(try test.rows("SELECT * FROM c") == ["'x',1"])
        #expect(
            try test.rejects() == [
                #"'b','it refers to a row of a that does not exist','{"id":2,"a":2}'"#,
                #"'c','it refers to a row of b that does not exist','{"k":"y","b":2}'"#,
            ])
        let error = try #require(throws: MoultError.self) { try test.run(RowRule(table: "b")) }
        #expect(error.code == .rowRejected)
        // The table of the parents may come last.
        try test.run(RowRule(table: "c"), RowRule(table: "b"), RowRule(table: "a"))
        #expect(try test.rows("SELECT * FROM c ORDER BY k") == ["'x',1", "'y',2"])
    }

    @Test func `a shipped row is restored if the row that replaced it is rejected`() throws {
        let schema = "CREATE TABLE a(id INTEGER PRIMARY KEY); CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a);"
        let test = try TransferCase(
            old: schema + "INSERT INTO b VALUES(1,9)",
            new: schema + "INSERT INTO a VALUES(1); INSERT INTO b VALUES(1,1)")
        let outcome = try test.run(RowRule(table: "b", onReject: .record))
        #expect(outcome == [TableOutcome(table: "b", selected: 1, rejected: 1)])
        #expect(try test.rows("SELECT * FROM b") == ["1,1"])
        #expect(try test.rows("SELECT row FROM moult_rejected") == [#"'{"id":1,"a":9}'"#])
    }

    @Test func `shipped rows that refer to a replaced row are recorded`() throws {
        let schema = """
            CREATE TABLE a(id INTEGER PRIMARY KEY, n UNIQUE); CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a);
            """
        let test = try TransferCase(
            old: schema + "INSERT INTO a VALUES(5,'x')",
            new: schema + "INSERT INTO a VALUES(1,'x'); INSERT INTO b VALUES(1,1),(2,NULL)")
        let outcome = try test.run(RowRule(table: "a"))
        #expect(
            outcome == [
                TableOutcome(table: "a", selected: 1, carried: 1, shippedLosers: 1),
                TableOutcome(table: "b", shippedLosers: 1),
            ])
        #expect(try test.rows("SELECT * FROM b") == ["2,NULL"])
        #expect(
            try test.rows("SELECT row FROM moult_rejected") == [#"'{"id":1,"n":"x"}'"#, #"'{"id":1,"a":1}'"#])
    }

    @Test func `a foreign key violation within the shipped content has its own error code`() throws {
        let schema = "CREATE TABLE a(id INTEGER PRIMARY KEY); CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a);"
        let test = try TransferCase(
            old: schema + "INSERT INTO b VALUES(2,NULL)", new: schema + "INSERT INTO b VALUES(1,9)")
        let error = try #require(throws: MoultError.self) { try test.run(RowRule(table: "b")) }
        #expect(error.code == .shippedViolation)
    }

    @Test(arguments: ["content=t, content_rowid=id", "content='t', content_rowid='id'", "content=v, content_rowid=id"])
    func `full-text indexes find carried rows, but not replaced rows`(_ options: String) throws {
        let schema = """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE VIEW v AS SELECT * FROM t;
            CREATE VIRTUAL TABLE f USING fts5(a, \(options));
            """
        let test = try TransferCase(
            old: schema + "INSERT INTO t VALUES(1,'saffron')",
            new: schema + "INSERT INTO t VALUES(1,'flour'),(2,'rice'); INSERT INTO f(f) VALUES('rebuild')")
        try test.run(RowRule(table: "t"))
        #expect(try test.rows("SELECT rowid FROM f('saffron')") == ["1"])
        #expect(try test.rows("SELECT rowid FROM f('flour')") == [])
        #expect(try test.rows("SELECT rowid FROM f('rice')") == ["2"])
    }

    @Test func `a row with a key gets a new rowid if its rowid is taken`() throws {
        let schema = "CREATE TABLE t(a TEXT PRIMARY KEY);"
        let test = try TransferCase(
            old: schema + "INSERT INTO t(rowid, a) VALUES(5,'x'),(9,'y')",
            new: schema + "INSERT INTO t(rowid, a) VALUES(5,'z'),(20,'y')")
        let outcome = try test.run(RowRule(table: "t"))
        #expect(outcome == [TableOutcome(table: "t", selected: 2, carried: 2)])
        #expect(try test.rows("SELECT rowid, a FROM t") == ["5,'z'", "20,'y'", "21,'x'"])
    }

    @Test func `renamed columns are carried and lost values are counted`() throws {
        let test = try TransferCase(
            old:
                "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c DEFAULT 7); INSERT INTO t VALUES(1,2,3,7),(2,3,NULL,8),(3,3,NULL,NULL)",
            new: "CREATE TABLE t(z, id INTEGER PRIMARY KEY, n DEFAULT 5)")
        let outcome = try test.run(RowRule(table: "t", columns: ["A": "Z"]))
        #expect(outcome == [TableOutcome(table: "t", selected: 3, carried: 3, incomplete: 2)])
        #expect(try test.rows("SELECT id, z, n FROM t") == ["1,2,5", "2,3,5", "3,3,5"])
    }

    @Test func `rows whose table is missing are counted`() throws {
        let test = try TransferCase(old: "CREATE TABLE t(a); INSERT INTO t VALUES(1)", new: "CREATE TABLE u(a)")
        #expect(try test.run(RowRule(table: "t")) == [TableOutcome(table: "t", selected: 1, unplaced: 1)])
    }

    @Test func `records of rejected rows are carried over once`() throws {
        let table = "CREATE TABLE moult_rejected(release TEXT, \"table\" TEXT, reason TEXT, row TEXT);"
        let test = try TransferCase(
            old: table + "INSERT INTO moult_rejected VALUES('1','t','r',CAST(x'ff' AS TEXT)),('1','t','r','{}')",
            new: table + "INSERT INTO moult_rejected VALUES('1','t','r','{}')")
        try test.run()
        try test.run()
        #expect(try test.rows("SELECT hex(row) FROM moult_rejected") == ["'7B7D'", "'FF'"])
    }

    @Test(arguments: [
        ("CREATE TABLE t(a CHECK(app(a)))", "function app"), ("CREATE TABLE t(a, g AS (app(a)))", "function app"),
    ])
    func `a schema that calls an app function is refused, and nothing changes`(
        _ schema: String, _ name: String
    ) throws {
        let scratch = try Scratch()
        let new = try Connection(path: scratch.path("new.db"), access: .readWriteCreate)
        try new.execute(
            """
            CREATE TABLE t(a); CREATE TABLE u(a); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = '\(schema)' WHERE name = 't'; PRAGMA writable_schema = RESET
            """)
        let old = try Connection(
            path: scratch.database(
                "old.db", "CREATE TABLE t(a); CREATE TABLE u(a); INSERT INTO t VALUES(1); INSERT INTO u VALUES(1)"),
            access: .readWrite)
        try new.execute("BEGIN IMMEDIATE")
        let error = try #require(throws: MoultError.self) {
            try RowTransfer(
                rules: [RowRule(table: "u"), RowRule(table: "t", onReject: .record)],
                rejects: RejectTable(label: "2")
            ).run(from: old, to: new)
        }
        #expect(error.code == .appExtension, "\(error)")
        #expect(error.description.contains(name), "\(error)")
        #expect(try new.query("SELECT * FROM u") == [])
        #expect(try new.isInTransaction)
    }

    @Test(arguments: ["1) OR (1", "\"edtable\" = 1", "1; DELETE FROM t", "1 --\n) OR (1", "a = ?1", "(1"])
    func `a condition is refused unless it is a single expression over columns`(_ condition: String) throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(a); INSERT INTO t VALUES(1)", new: "CREATE TABLE t(a)")
        #expect(throws: MoultError.self) { try test.run(RowRule(table: "t", conditions: [condition])) }
        #expect(try test.rows("SELECT * FROM t") == [])
    }

    @Test func `a transfer restores the settings of its connections`() throws {
        let test = try TransferCase(old: "CREATE TABLE t(a)", new: "CREATE TABLE t(a)")
        try test.new.set(.foreignKeys, true)
        try test.run(RowRule(table: "t"))
        #expect(try test.new.isOn(.foreignKeys))
        #expect(try test.new.isOn(.triggers))
        #expect(try test.old.isOn(.doubleQuotedStringsInDML))
    }
}
