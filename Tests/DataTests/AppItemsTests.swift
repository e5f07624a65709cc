import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Indexes, triggers, views and generated columns of an app contain no rows. Still, the old database is kept if an
/// update drops one of them.
@Suite struct AppItemsTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static let schema = "CREATE TABLE d(id INTEGER PRIMARY KEY, a, b);"

    /// The object that the app creates, the migration, and the name in the plan.
    static let items: [(app: String, migration: String, name: String)] = [
        (
            "CREATE VIEW late AS SELECT a FROM d WHERE b > 1",
            "DROP VIEW IF EXISTS late; CREATE VIEW late AS SELECT a FROM d;", "view late"
        ),
        ("CREATE INDEX by_a ON d(a DESC)", "DROP INDEX by_a; CREATE INDEX by_a ON d(a);", "index by_a"),
        (
            "CREATE TRIGGER t AFTER INSERT ON d BEGIN SELECT 1; END",
            "DROP TRIGGER t; CREATE TRIGGER t AFTER INSERT ON d BEGIN SELECT 2; END;", "trigger t"
        ),
        ("CREATE INDEX by_b ON d(b)", "DROP INDEX by_b;", "index by_b"),
        (
            "ALTER TABLE d ADD COLUMN sum AS (a + b)",
            "CREATE TABLE n(id INTEGER PRIMARY KEY, a, b); INSERT INTO n SELECT id, a, b FROM d; DROP TABLE d; ALTER TABLE n RENAME TO d;",
            "generated column d.sum"
        ),
    ]

    private func begin(_ item: (app: String, migration: String, name: String)) throws {
        try shop.pack("1.0.0", [.user(Self.schema + "PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO d VALUES(1, 2, 3); \(item.app)")
        try shop.pack(
            "2.0.0",
            [
                .user(
                    Self.schema + "PRAGMA user_version = 2;",
                    ["m/2.sql": item.migration + "\nPRAGMA user_version = 2;\n"])
            ])
    }

    @Test(arguments: items)
    func
        `a migration that drops or replaces an object that the app created keeps the old database, and a deep plan says so`(
            _ item: (app: String, migration: String, name: String)
        ) throws
    {
        try begin(item)
        let plan = try Shop.last(shop.plan("2.0.0", "--deep", "--json"))
        let warnings = plan["warnings"]?.array?.compactMap(\.string) ?? []
        #expect(
            warnings == [
                "diary.db: the migrations drop or change schema objects of the app: \(item.name); "
                    + "the old database is kept in quarantine"
            ], "\(plan.line)")
        try shop.install("2.0.0")
        let kept = try shop.onlyKept("diary")
        #expect(kept.reason == "migrated")
        #expect(try kept.sql("diary.db", "SELECT a, b FROM d") == "2|3\n")
    }

    @Test func `no copy of the database is kept if a migration replaces a shipped view`() throws {
        let view = "CREATE VIEW late AS SELECT a FROM d;"
        try shop.pack("1.0.0", [.user(Self.schema + view + "PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO d VALUES(1, 2, 3)")
        try shop.pack(
            "2.0.0",
            [
                .user(
                    Self.schema + "CREATE VIEW late AS SELECT b FROM d; PRAGMA user_version = 2;",
                    ["m/2.sql": "DROP VIEW late; CREATE VIEW late AS SELECT b FROM d; PRAGMA user_version = 2;\n"])
            ])
        #expect(try Shop.last(shop.plan("2.0.0", "--deep", "--json"))["warnings"]?.array?.isEmpty != false)
        try shop.install("2.0.0")
        #expect(try shop.kept().isEmpty)
    }

    @Test func `the old database is kept if an app has added a generated column to a shared table`() throws {
        let table = "CREATE TABLE item(id INTEGER PRIMARY KEY, name);"
        let preserve: [JSON] = [["table": "item", "where": "id >= 1000"]]
        try shop.pack("1.0.0", [.shared(table, preserve)])
        try shop.install("1.0.0")
        try shop.sql(
            "app.db", "ALTER TABLE item ADD COLUMN size AS (length(name)); INSERT INTO item(id, name) VALUES(1000, 'x')"
        )
        try shop.pack("2.0.0", [.shared(table + "CREATE TABLE new(x);", preserve)])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT * FROM item") == "1000|x\n")
        let kept = try shop.onlyKept("app")
        #expect(try kept.sql("app.db", "SELECT size FROM item") == "1\n")
    }
}
