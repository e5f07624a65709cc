import Moult
import MoultBasics
import MoultFiles
import MoultSQLite
import StepKit
import TestSupport
import Testing

/// A user database with collations and functions that only the app has.
@Suite struct AppSchemaTests {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store
    var path: String { scratch.path("store/user.db") }

    static let one = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL); PRAGMA user_version = 1;"
    static let two = """
        CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0);
        PRAGMA user_version = 2;
        """
    static let toTwo = "ALTER TABLE note ADD COLUMN done INTEGER NOT NULL DEFAULT 0;\nPRAGMA user_version = 2;\n"

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: scratch.path("store"))
        try store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [.user("user", Self.one)]))
    }

    private func second(_ sql: String = two, _ migration: String = toTwo) throws -> String {
        try maker.make("2.0.0", sequence: 2, [.user("user", sql, migrations: ["m/2.sql": migration])])
    }

    /// Runs SQL as the app; with `leaving`, the process ends without closing the database.
    private func app(_ sql: String, leaving: Bool = false) throws {
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.create_collation("de", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))
            c.create_function("fold", 1, lambda s: str(s).lower(), deterministic=True)
            c.executescript(sys.argv[2])
            if sys.argv[3] == "leaving": os._exit(0)
            """, path, sql, leaving ? "leaving" : "",
        ])
    }

    private func rows(_ sql: String) throws -> String { try Shell.must(["sqlite3", path, sql]) }

    static let schemas = [
        "CREATE INDEX by_text ON note(text COLLATE de);", "CREATE INDEX by_fold ON note(fold(text));",
        "CREATE TRIGGER t AFTER UPDATE ON note BEGIN SELECT fold(new.text); END;",
        "CREATE TABLE own(a TEXT CHECK(fold(a) = a), g AS (fold(a))); INSERT INTO own VALUES('x');",
        "CREATE TABLE own(a TEXT PRIMARY KEY COLLATE de) WITHOUT ROWID; INSERT INTO own VALUES('b'), ('A');",
        "CREATE VIEW v AS SELECT fold(text) FROM note ORDER BY text COLLATE de;",
    ]

    @Test(arguments: schemas)
    func `a migration that does not use the app's functions succeeds`(_ schema: String) throws {
        try app("INSERT INTO note(text) VALUES('b'), ('A');" + schema)
        try store.updateBlocking(to: second())
        #expect(try rows("PRAGMA user_version; SELECT text, done FROM note NOT INDEXED ORDER BY id") == "2\nb|0\nA|0\n")
    }

    @Test(arguments: schemas)
    func `a database that an app left with a WAL does not count as damaged`(_ schema: String) throws {
        try app("PRAGMA journal_mode = WAL;" + schema)
        try app("INSERT INTO note(text) VALUES('b'), ('A');", leaving: true)
        #expect(try (Files.facts("\(path)-wal")?.size ?? 0) > 0)
        let database = try #require(
            try StoreSnapshot(StoreLayout(root: store.directory)).installed?.manifest.database("user"))
        let layout = try StoreLayout(root: store.directory)
        let generation = try #require(try StoreSnapshot(layout).installed)
        #expect(try Assessment(of: generation, in: StoreSnapshot(layout)).state(of: database, .glance).fault == nil)
        let check = try #require(
            try Verifier(StoreSnapshot(layout)).verify(deep: true).first { $0.method == "integrity_check" })
        #expect(check.finding == nil)
        // Checks do not read views and triggers, and a read-only check does not evaluate CHECK constraints.
        let isPartOfIt = schema.contains("INDEX") || schema.contains("WITHOUT ROWID")
        #expect(check.notChecked.contains { $0.contains("it needs the app's") } == isPartOfIt, "\(check)")
        try store.updateBlocking(to: second())
        #expect(try rows("PRAGMA user_version; SELECT count(*) FROM note NOT INDEXED") == "2\n2\n")
    }

    @Test(arguments: [
        ("CREATE INDEX by_text ON note(text COLLATE de);", "collation \"de\"", "UPDATE note SET text = 'x';"),
        ("CREATE INDEX by_fold ON note(fold(text));", "function \"fold\"", "UPDATE note SET text = 'x';"),
    ])
    func `the error for a migration that needs the app says what is missing`(
        schema: String, need: String, script: String
    ) throws {
        try app("INSERT INTO note(text) VALUES('b');" + schema)
        let before = try Files.facts(path)
        let error = #expect(throws: MoultError.self) {
            try store.updateBlocking(to: second(Self.two, Self.toTwo + script))
        }
        #expect(error?.outcome == .refused)
        #expect(
            error?.why?.hasPrefix("the migration needs the \(need), which SQLite does not have") == true,
            "\(error as Any)")
        #expect(error?.now?.description.hasSuffix("whose migration does without the \(need).") == true)
        #expect(try Files.facts(path) == before)
    }

    @Test func `rows that violated a constraint before a migration do not make it fail`() throws {
        try app(
            """
            CREATE TABLE own(a NOT NULL, b CHECK(b > 0), c REFERENCES note(id)); PRAGMA ignore_check_constraints = 1;
            INSERT INTO own VALUES(1, -1, 99); PRAGMA writable_schema = 1;
            UPDATE sqlite_schema SET sql = replace(sql, 'text TEXT NOT NULL', 'text TEXT') WHERE name = 'note';
            """)
        try app(
            "INSERT INTO note(text) VALUES(NULL); PRAGMA writable_schema = 1; "
                + "UPDATE sqlite_schema SET sql = replace(sql, 'text TEXT', 'text TEXT NOT NULL') WHERE name = 'note';")
        let check = try rows("PRAGMA quick_check")
        #expect(
            check.contains("NULL value in note.text\n") && check.contains("CHECK constraint failed in own\n"),
            "\(check)")
        try store.updateBlocking(to: second())
        #expect(try rows("PRAGMA user_version") == "2\n")
    }

    @Test func `a migration that causes a violation is refused`() throws {
        try app("CREATE TABLE own(b); INSERT INTO own VALUES(-1);")
        let script = "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = 'x';"
        #expect(throws: MoultError.self) { try store.updateBlocking(to: second(Self.two, Self.toTwo + script)) }
        // SQLite does not apply a new CHECK constraint to existing rows.
        let added =
            "CREATE TABLE more(a); INSERT INTO more VALUES(1); ALTER TABLE more ADD COLUMN b NOT NULL DEFAULT 'x' CHECK(b = 'y');"
        #expect(throws: MoultError.self) { try store.updateBlocking(to: second(Self.two, Self.toTwo + added)) }
    }

    @Test func `the error for a damaged database does not blame the publisher`() throws {
        try app(
            """
            CREATE TABLE own(id INTEGER PRIMARY KEY, x);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
            INSERT INTO own SELECT i, hex(zeroblob(500)) FROM n;
            """)
        let file = try Descriptor(path, .write)
        try [UInt8](repeating: 255, count: 512).withUnsafeBytes { try file.write($0, at: 40 * 4096) }
        try file.close()
        let before = try Files.facts(path)
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: second()) }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "the user database user is damaged", "\(error as Any)")
        #expect(error?.now?.description.contains("publisher") == false)
        #expect(try Files.facts(path) == before)
    }
}
