import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A database may need functions or collations that only its app registers. Only an operation that must evaluate them is refused.
@Suite struct AppNeedTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let schemas = [
        "CREATE TABLE d(a TEXT, b); CREATE INDEX i ON d(a COLLATE de)",
        "CREATE TABLE d(a TEXT COLLATE de PRIMARY KEY, b)",
        "CREATE TABLE d(a TEXT PRIMARY KEY COLLATE de, b) WITHOUT ROWID",
        "CREATE TABLE d(a TEXT CHECK(fold(a) <> ''), b)",
        "CREATE TABLE d(a TEXT, b); CREATE INDEX i ON d(fold(a))",
        "CREATE TABLE d(a TEXT, b, g AS (fold(a)) NOT NULL)",
        "CREATE TABLE d(a TEXT, b); CREATE TRIGGER r AFTER UPDATE ON d BEGIN UPDATE d SET b = fold(new.a); END",
        "CREATE TABLE d(a TEXT, b); CREATE VIEW v AS SELECT fold(a) AS f FROM d",
    ]

    /// Runs SQL as the app does.
    private func run(_ sql: String, on path: String) throws {
        try Shell.must([
            "python3", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.create_collation("de", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))
            c.create_function("fold", 1, lambda s: str(s).lower(), deterministic=True)
            c.executescript(sys.argv[2])
            """, path, sql,
        ])
    }

    private func make(_ name: String, _ schema: String, _ rows: String) throws -> String {
        let path = shop.scratch.path(name)
        try run("\(schema); \(rows); CREATE TABLE n(id INTEGER PRIMARY KEY, x);", on: path)
        return path
    }

    @Test(.tags(.sampled), arguments: schemas.sampled(3))
    func `a database that needs its app can be packed, replaced and undone`(_ schema: String) throws {
        let old = try make("app.db", schema, "INSERT INTO d(a, b) VALUES('B', 1), ('a', 2)")
        let new = try make("new.db", schema, "INSERT INTO d(a, b) VALUES('c', 3)")
        try Shop.sql(old, "INSERT INTO n VALUES(1, 'mine')")
        let moult = try Shop.command()
        try Shell.must([moult, "replace", "-q", old, new, "--preserve", "n"])
        #expect(try Shop.sql(old, "SELECT x FROM n") == "mine\n")
        try Shell.must([moult, "replace", "--undo", old])
        #expect(try Shop.sql(old, "SELECT x FROM n") == "mine\n")
        try Shell.must([moult, "inspect", old])
        let compared = try Shell.run([moult, "diff", old, new])
        #expect(compared.status == 2, "\(compared)")
        for kind in ["reference", "shared", "user", "cache"] {
            let preserve = kind == "shared" ? #""preserve": [],"# : ""
            let draft = """
                {"manifest": 1, "product": "local.other", "version": "1.0.0",
                 "databases": {"new": {"kind": "\(kind)", \(preserve) "source": "new.db"}}}
                """
            try Files.writeNew(Array(draft.utf8), to: shop.scratch.path("\(kind).json"))
            try Shell.must([moult, "pack", "-q", shop.scratch.path("\(kind).json"), "-o", shop.scratch.path(kind)])
            let store = shop.scratch.path("store-\(kind)")
            try Shell.must([moult, "init", "-q", store, "--product", "local.other"])
            try Shell.must([moult, "apply", "-q", "\(shop.scratch.path(kind))/other-1.0.0.json", "--store", store])
        }
    }

    @Test(.tags(.sampled), arguments: schemas.sampled(3))
    func `a migration of another table leaves the rows of such a table in place`(_ schema: String) throws {
        let note = "CREATE TABLE note(t); PRAGMA user_version = 1;"
        try shop.install(try shop.makeUnchecked("1.0.0", [.user(note)]))
        try run("\(schema); INSERT INTO d(a, b) VALUES('B', 1), ('a', 2)", on: shop.path("diary.db"))
        let release = try shop.makeUnchecked(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE note(t, n); PRAGMA user_version = 2;",
                    ["2": "ALTER TABLE note ADD COLUMN n; PRAGMA user_version = 2;"])
            ])
        try shop.install(release)
        let count =
            "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version').fetchone()[0])"
        #expect(try Shell.must(["python3", "-c", count, shop.path("diary.db")]) == "2\n")
        try run("UPDATE d SET b = 9 WHERE a = 'B'", on: shop.path("diary.db"))
    }
}
