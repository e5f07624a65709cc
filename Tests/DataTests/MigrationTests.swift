import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// If a migration drops content of a user database, the old database is kept. Migrations run whatever the app has added
/// to the database.
@Suite struct MigrationTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    /// SQLite's documented way to change a table creates it again.
    @Test func `a migration that creates a table again does not reuse numbers`() throws {
        let table = "id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT"
        try shop.pack("1.0.0", [.user("CREATE TABLE t(\(table)); PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO t(v) VALUES('a'), ('b'), ('c'); DELETE FROM t WHERE id > 1")
        let again = "INSERT INTO n SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t; PRAGMA user_version = 2;"
        try shop.pack(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE t(\(table) NOT NULL); PRAGMA user_version = 2;",
                    ["m/2.sql": "CREATE TABLE n(\(table) NOT NULL);\n\(again)\n"])
            ])
        try shop.install("2.0.0")
        try shop.sql("diary.db", "INSERT INTO t(v) VALUES('new')")
        #expect(try shop.read("diary.db", "SELECT id, v FROM t ORDER BY id") == "1|a\n4|new\n")
    }

    @Test func `a downgrade is not advised if the migrated database would refuse it`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE t(v); PRAGMA user_version = 1;")])
        try shop.pack(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE t(v, w); PRAGMA user_version = 2;",
                    ["m/2.sql": "ALTER TABLE t ADD COLUMN w; PRAGMA user_version = 2;"])
            ])
        try shop.install("1.0.0")
        try shop.install("2.0.0")
        for refused in [try shop.plan("1.0.0"), try shop.apply("1.0.0")] {
            #expect(refused.status == 3, "\(refused)")
            #expect(refused.errors.contains("With --allow-downgrade it would be refused, too"), "\(refused)")
            #expect(refused.errors.contains("To install it anyway") == false, "\(refused)")
        }
        let forced = try shop.apply("1.0.0", "--allow-downgrade")
        #expect(forced.status == 3 && forced.errors.contains("is newer than release 1.0.0 supports"), "\(forced)")
    }

    @Test func `pack refuses a release that lacks a migration of an earlier one`() throws {
        let directory = shop.scratch.path("own")
        try Files.ensureDirectory(directory)
        func pack(_ number: Int, _ migrations: String, _ more: String = "") throws -> Shell.Ended {
            try Shell.run(
                [
                    "sh", "-ec",
                    """
                    mkdir -p m; echo 'UPDATE t SET v = v * 100; PRAGMA user_version = 2;' > m/0002.sql
                    echo 'UPDATE t SET v = v + 1; PRAGMA user_version = 3;' > m/0003.sql
                    echo 'CREATE TABLE t(v); PRAGMA user_version = \(number);' > t\(number).sql
                    echo '{"manifest": 1, "product": "o.x", "version": "\(number).0.0", "sequence": \(number), \(more)
                        "databases": {"u": {"kind": "user", "build": {"script": "t\(number).sql"}, "migrations": [\(migrations)]}}}' > d.json
                    "$0" pack -q d.json
                    """, try Shop.command(),
                ], in: directory)
        }
        #expect(try pack(1, "").status == 0)
        #expect(try pack(2, "\"m/0002.sql\"").status == 0)
        let refused = try pack(3, "\"m/0003.sql\"")
        #expect(
            refused.status == 3 && refused.errors.contains("the migration m/0002.sql of u is missing"), "\(refused)")
        let excluded = try pack(3, "\"m/0003.sql\"", "\"requires\": {\"from\": \">=2.0.0\"},")
        #expect(excluded.status == 0, "\(excluded)")
    }

    // MARK: Values that a migration drops

    static let one = "CREATE TABLE d(id INTEGER PRIMARY KEY, a, b); CREATE TABLE e(x); PRAGMA user_version = 1;"

    /// Each case: a migration, the resulting schema, the table, and the number of rows that lose a value.
    static let dropping: [(name: String, sql: String, leadsTo: String, table: String, rows: Int64)] = [
        (
            "an update and a column", "UPDATE d SET a = NULL; ALTER TABLE d DROP COLUMN b;",
            "CREATE TABLE d(id INTEGER PRIMARY KEY, a); CREATE TABLE e(x);", "d", 2
        ),
        ("one value", "UPDATE d SET a = 'other' WHERE id = 1;", one, "d", 1),
        ("the type of a value", "UPDATE d SET b = CAST(b AS TEXT) WHERE id = 1;", one, "d", 1),
        (
            "a column", "ALTER TABLE d DROP COLUMN b;", "CREATE TABLE d(id INTEGER PRIMARY KEY, a); CREATE TABLE e(x);",
            "d", 2
        ),
        // The statement reads its own change to the first row, so only that row gets a different value.
        (
            "values that overwrite each other", "UPDATE d SET a = (SELECT a FROM d AS o WHERE o.id = 3 - d.id);", one,
            "d", 1
        ),
    ]

    private func begin(_ change: (name: String, sql: String, leadsTo: String, table: String, rows: Int64)) throws {
        try shop.pack("1.0.0", [.user(Self.one)])
        try shop.install("1.0.0")
        try shop.sql(
            "diary.db", "INSERT INTO d VALUES(1, 'AVALUE', 7), (2, 'ASECOND', 8); INSERT INTO e VALUES('EVALUE')")
        try shop.pack(
            "2.0.0",
            [
                .user(
                    change.leadsTo + "PRAGMA user_version = 2;",
                    ["m/2.sql": change.sql + "\nPRAGMA user_version = 2;\n"])
            ])
    }

    @Test(arguments: dropping, ["delete", "wal"])
    func `a migration that drops or changes a value keeps the old database`(
        _ change: (name: String, sql: String, leadsTo: String, table: String, rows: Int64), mode: String
    ) throws {
        try begin(change)
        try App.run(
            shop.path("diary.db"), crash: mode == "wal", "PRAGMA journal_mode = \(mode)", "INSERT INTO e VALUES('LATE')"
        )
        let result = try Shop.last(shop.apply("2.0.0", "--json"))
        #expect(try shop.read("diary.db", "PRAGMA user_version") == "2\n")
        let kept = try shop.onlyKept("diary")
        #expect(kept.reason == "migrated")
        #expect(kept.release == "1.0.0")
        #expect(kept.rows(change.table) == change.rows)
        #expect(
            try kept.sql("diary.db", "PRAGMA user_version; SELECT * FROM d; SELECT * FROM e")
                == "1\n1|AVALUE|7\n2|ASECOND|8\nEVALUE\nLATE\n")
        #expect(result["kept"]?.array?.first?["reason"]?.string == "migrated")
    }

    @Test(.tags(.sampled), arguments: dropping.sampled(2))
    func `a deep plan counts the rows that lose a value`(
        _ change: (name: String, sql: String, leadsTo: String, table: String, rows: Int64)
    ) throws {
        try begin(change)
        let counts = Counts.inPlan(try Shop.last(shop.plan("2.0.0", "--deep", "--json")), "diary")
        #expect(counts[change.table]?.kept == Int(change.rows))
        #expect((counts["e"]?.kept ?? 0) == 0)
    }

    @Test func `rows that a migration deletes within its budget are kept in quarantine`() throws {
        try shop.pack("1.0.0", [.user(Self.one)])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO d VALUES(1, 'AVALUE', 7), (2, 'ASECOND', 8)")
        var maker = try ReleaseMaker(in: shop.scratch.path("budget"))
        maker.product = "local.shop"
        let next = try maker.make(
            "2.0.0", sequence: 20000,
            [
                .user(
                    "diary",
                    "CREATE TABLE d(id INTEGER PRIMARY KEY, a, b); CREATE TABLE e(x); PRAGMA user_version = 2;",
                    migrations: ["m/2.sql": "DELETE FROM d WHERE id = 1; PRAGMA user_version = 2;\n"])
            ], top: [.init("budget", ["diary.d": ["shrink": "50%"]])])
        try shop.install(next)
        #expect(try shop.read("diary.db", "SELECT a FROM d") == "ASECOND\n")
        let kept = try shop.onlyKept("diary")
        #expect(kept.rows("d") == 1)
        #expect(try kept.sql("diary.db", "SELECT a FROM d ORDER BY id") == "AVALUE\nASECOND\n")
    }

    static let keeping: [(name: String, sql: String, leadsTo: String)] = [
        (
            "a column is added", "ALTER TABLE d ADD COLUMN c;",
            "CREATE TABLE d(id INTEGER PRIMARY KEY, a, b, c); CREATE TABLE e(x);"
        ),
        (
            "a table is made again with all its values",
            "CREATE TABLE n(id INTEGER PRIMARY KEY, a, b, c); INSERT INTO n(id, a, b) SELECT id, a, b FROM d;"
                + "DROP TABLE d; ALTER TABLE n RENAME TO d;",
            "CREATE TABLE d(id INTEGER PRIMARY KEY, a, b, c); CREATE TABLE e(x);"
        ),
        ("an index is added", "CREATE INDEX d_a ON d(a);", one + "CREATE INDEX d_a ON d(a);"),
        ("a row is added", "INSERT INTO e VALUES('NEW');", one),
    ]

    @Test(arguments: keeping)
    func `no copy of the database is kept if a migration keeps every value`(
        _ change: (name: String, sql: String, leadsTo: String)
    )
        throws
    {
        try begin((change.name, change.sql, change.leadsTo, "", 0))
        try shop.install("2.0.0")
        #expect(try shop.read("diary.db", "SELECT a, b FROM d") == "AVALUE|7\nASECOND|8\n")
        #expect(try shop.kept().isEmpty)
    }

    @Test func `no copy of the database is kept if a migration is refused`() throws {
        try begin(("", "UPDATE d SET a = NULL; SELECT nothing();", Self.one, "d", 2))
        #expect(try shop.apply("2.0.0").status == 3)
        #expect(try shop.kept().isEmpty)
        #expect(try shop.read("diary.db", "SELECT a FROM d") == "AVALUE\nASECOND\n")
    }

    @Test(arguments: ["SELECT nothing();", "UPDATE d SET nothing = 1;", "DELETE FROM d;"])
    func `the error of a failed migration names the database and no internal file`(sql: String) throws {
        try begin(("", sql, Self.one, "d", 2))
        for ended in [try shop.plan("2.0.0", "--deep"), try shop.apply("2.0.0")] {
            #expect(ended.status == 3, "\(ended.errors)")
            #expect(ended.errors.contains(shop.path("diary.db")), "\(ended.errors)")
            #expect(!ended.errors.contains("/.moult/"), "\(ended.errors)")
        }
    }

    // MARK: The app's data in its database

    /// Content that an app creates before the migration: objects that need the app's collation or function, and invalid rows.
    static let contents: [(name: String, statements: [String])] = [
        ("an index on the app's collation", ["CREATE INDEX own ON note(t COLLATE appcoll)"]),
        ("a unique index on the app's collation", ["CREATE UNIQUE INDEX own ON note(t COLLATE appcoll)"]),
        (
            "a table with the app's collation",
            ["CREATE TABLE own(x COLLATE appcoll UNIQUE)", "INSERT INTO own VALUES('x')"]
        ),
        ("an index on the app's function", ["CREATE INDEX own ON note(appfunc(t))"]),
        ("an index where the app's function holds", ["CREATE INDEX own ON note(t) WHERE appfunc(t) > 'A'"]),
        (
            "a trigger with the app's function",
            ["CREATE TRIGGER own AFTER UPDATE ON note BEGIN SELECT appfunc(new.t); END"]
        ),
        (
            "a check with the app's function",
            ["CREATE TABLE own(x CHECK(appfunc(x) > 0))", "INSERT INTO own VALUES(7)"]
        ),
        (
            "a generated column with the app's function",
            ["CREATE TABLE own(x, y AS (appfunc(x)))", "INSERT INTO own(x) VALUES(7)"]
        ),
        ("a view with the app's function", ["CREATE VIEW own AS SELECT appfunc(t) FROM note"]),
        ("a row that refers to nothing", ["CREATE TABLE own(x REFERENCES note(id))", "INSERT INTO own VALUES(99)"]),
        (
            "a row that breaks a check",
            ["CREATE TABLE own(x CHECK(x > 0))", "PRAGMA ignore_check_constraints = 1", "INSERT INTO own VALUES(-1)"]
        ),
        (
            "a NULL in a column that must not have one",
            [
                "CREATE TABLE own(x, y)", "INSERT INTO own VALUES(NULL, 1)", "PRAGMA writable_schema = 1",
                "UPDATE sqlite_schema SET sql = 'CREATE TABLE own(x NOT NULL, y)' WHERE name = 'own'",
            ]
        ),
    ]

    private func beginNote() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE note(id INTEGER PRIMARY KEY, t TEXT); PRAGMA user_version = 1;")])
        try shop.pack(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE note(id INTEGER PRIMARY KEY, t TEXT, d); PRAGMA user_version = 2;",
                    ["m/2.sql": "ALTER TABLE note ADD COLUMN d; PRAGMA user_version = 2;"])
            ])
    }

    private func write(_ statements: [String], crash: Bool = false) throws {
        try App.run(shop.path("diary.db"), crash: crash, all: statements + ["INSERT INTO note(t) VALUES('DIARY')"])
    }

    private let rows = "PRAGMA user_version; SELECT t FROM note NOT INDEXED"

    @Test(arguments: contents)
    func `a migration runs on a database with content that is invalid or needs the app's functions`(
        _ content: (name: String, statements: [String])
    ) throws {
        try beginNote()
        try shop.install("1.0.0")
        try write(content.statements)
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.read("diary.db", rows) == "2\nDIARY\n")
        #expect(try shop.read("diary.db", ".schema").contains("own"))
    }

    @Test(.tags(.sampled), arguments: contents.sampled(4))
    func `a first install migrates a database with content that is invalid or needs the app's functions`(
        _ content: (name: String, statements: [String])
    ) throws {
        try beginNote()
        try App.run(
            shop.path("diary.db"),
            all: ["CREATE TABLE note(id INTEGER PRIMARY KEY, t TEXT)", "PRAGMA user_version = 1"] + content.statements
                + ["INSERT INTO note(t) VALUES('DIARY')"])
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.read("diary.db", rows) == "2\nDIARY\n")
    }

    @Test(.tags(.sampled), arguments: contents.sampled(4))
    func `after a crash, content that is invalid or needs the app's functions does not count as damage`(
        _ content: (name: String, statements: [String])
    ) throws {
        try beginNote()
        try shop.install("1.0.0")
        try write(["PRAGMA journal_mode = WAL"] + content.statements, crash: true)
        try #require(try Files.facts(shop.path("diary.db-wal")) != nil)
        // The cases with a PRAGMA create rows that really violate a constraint, and `verify` reports these.
        if !content.statements.contains(where: { $0.hasPrefix("PRAGMA") }) {
            let ended = try shop.moult("verify")
            #expect(ended.status == 0, "\(ended.output)")
        }
        let after = try shop.apply("2.0.0")
        #expect(after.status == 0, "\(after.errors)")
        #expect(try shop.read("diary.db", rows) == "2\nDIARY\n")
    }

    @Test func `a migration that fires a trigger with an app function is refused, and the error names the function`()
        throws
    {
        try beginNote()
        try shop.pack(
            "2.0.1",
            [
                .user(
                    "CREATE TABLE note(id INTEGER PRIMARY KEY, t TEXT, d); PRAGMA user_version = 2;",
                    ["m/2.sql": "ALTER TABLE note ADD COLUMN d; UPDATE note SET d = 1; PRAGMA user_version = 2;"])
            ])
        try shop.install("1.0.0")
        try write(["CREATE TRIGGER own AFTER UPDATE ON note BEGIN SELECT appfunc(new.t); END"])
        let ended = try shop.apply("2.0.1")
        #expect(ended.status == 3, "\(ended.errors)")
        #expect(ended.errors.contains("appfunc"), "\(ended.errors)")
        #expect(!ended.errors.contains("publisher"), "the publisher is not to blame: \(ended.errors)")
        #expect(try shop.read("diary.db", "SELECT t FROM note") == "DIARY\n")
    }

    @Test func `a migration that makes rows violate a constraint is refused`() throws {
        try beginNote()
        try shop.pack(
            "2.0.1",
            [
                .user(
                    "CREATE TABLE note(id INTEGER PRIMARY KEY, t TEXT CHECK(t <> 'DIARY')); PRAGMA user_version = 2;",
                    [
                        "m/2.sql":
                            "CREATE TABLE n(id INTEGER PRIMARY KEY, t TEXT CHECK(t <> 'DIARY'));"
                            + "INSERT INTO n SELECT * FROM note; DROP TABLE note;"
                            + "ALTER TABLE n RENAME TO note; PRAGMA user_version = 2;"
                    ])
            ])
        try shop.install("1.0.0")
        try write([])
        #expect(try shop.apply("2.0.1").status == 3)
        #expect(try shop.read("diary.db", rows) == "1\nDIARY\n")
    }

    @Test(.tags(.sampled), arguments: contents.sampled(4))
    func `an update replaces a shared database with content that is invalid or needs the app's functions`(
        _ content: (name: String, statements: [String])
    ) throws {
        let schema = "CREATE TABLE note(id INTEGER PRIMARY KEY, t TEXT, mine INT DEFAULT 1);"
        let own: JSON = ["table": "note", "where": "mine = 1"]
        try shop.pack("1.0.0", [.shared(schema, [own])])
        try shop.install("1.0.0")
        try App.run(shop.path("app.db"), all: content.statements + ["INSERT INTO note(t) VALUES('MINE')"])
        try shop.pack("2.0.0", [.shared(schema + "CREATE TABLE more(x);", [own])])
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.read("app.db", "SELECT t FROM note") == "MINE\n")
        #expect(try Shop.read("\(shop.onlyKept("app").directory)/app.db", ".schema").contains("own"))
    }

    @Test func `a migration that drops an index or trigger that the app created keeps the old database`() throws {
        let made = "CREATE INDEX shipped ON d(a);"
        try shop.pack("1.0.0", [.user(Self.one + made)])
        try shop.install("1.0.0")
        try shop.sql(
            "diary.db", "CREATE TRIGGER mine AFTER DELETE ON d BEGIN SELECT 1; END; INSERT INTO d VALUES(1, 'A', 7)")
        // The usual way to change a table drops its indexes and triggers.
        let rebuild = """
            CREATE TABLE n(id INTEGER PRIMARY KEY, a, b); INSERT INTO n SELECT * FROM d; DROP TABLE d;
            ALTER TABLE n RENAME TO d; PRAGMA user_version = 2;
            """
        try shop.pack("2.0.0", [.user(Self.one + "PRAGMA user_version = 2;", ["m/2.sql": rebuild])])
        try shop.install("2.0.0")
        #expect(
            try shop.onlyKept("diary").sql("diary.db", "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
                == "mine\n")
    }

    @Test func `no copy of the database is kept if a migration drops a shipped index`() throws {
        try shop.pack("1.0.0", [.user(Self.one + "CREATE INDEX shipped ON d(a);")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO d VALUES(1, 'A', 7)")
        try shop.pack(
            "2.0.0",
            [
                .user(
                    Self.one + "PRAGMA user_version = 2;",
                    ["m/2.sql": "DROP INDEX shipped; PRAGMA user_version = 2;"])
            ])
        try shop.install("2.0.0")
        #expect(try shop.kept().isEmpty)
    }

    @Test func `a row that loses two values is counted once`() throws {
        try begin(("", "UPDATE d SET a = b, b = a;", Self.one, "d", 2))
        try shop.install("2.0.0")
        #expect(try shop.onlyKept("diary").rows("d") == 2)
    }
}
