import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// SQLite accepts names that are not valid UTF-8. An app may have created tables with such names.
@Suite struct UndecodableNamesTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let item = "CREATE TABLE item(name TEXT);"

    /// Runs SQL in which `\351` stands for a byte that is not valid UTF-8.
    private func run(_ sql: String, on path: String) throws {
        try Shell.must(["sh", "-ec", "printf '\(sql)' | sqlite3 \"$1\"", "sh", path])
    }

    private static let own = "CREATE TABLE \"caf\\351\"(d); INSERT INTO \"caf\\351\" VALUES(\"user data\");"

    private func begin(_ kind: String = "shared") throws {
        for number in 1...2 {
            let sql = Self.item + "INSERT INTO item VALUES('\(number)');"
            try shop.pack("\(number).0.0", [kind == "cache" ? .cache(sql) : .shared(sql)])
        }
        try shop.install("1.0.0")
        try run(Self.own, on: shop.path("app.db"))
    }

    @Test func `an update keeps the file with such a table in quarantine`() throws {
        try begin()
        let applied = try shop.apply("2.0.0")
        #expect(applied.status == 0 && applied.output.contains("1 row"), "\(applied)")
        #expect(try shop.sql("app.db", "SELECT name FROM item") == "2\n")
        let exported = shop.scratch.path("old.db")
        try shop.must("quarantine", "--export", exported, "app")
        #expect(try Shell.must(["sqlite3", exported, ".dump"]).contains("user data"))
    }

    @Test func `a rollback keeps the file with such a table in quarantine`() throws {
        try begin()
        try shop.install("2.0.0")
        try run(Self.own, on: shop.path("app.db"))
        try shop.must("rollback")
        let kept = try Shell.must(["grep", "-rl", "user data", shop.path(".moult/quarantine")])
        #expect(kept.split(separator: "\n").count == 2, "\(kept)")
    }

    @Test func `an undo of a replacement keeps the file with such a table in quarantine`() throws {
        let (old, new) = (shop.scratch.path("old.db"), shop.scratch.path("new.db"))
        for file in [old, new] { try Shell.must(["sqlite3", file, Self.item]) }
        try Shell.must(["sqlite3", new, "CREATE TABLE more(x)"])
        let moult = try Shop.command()
        try Shell.must([moult, "replace", "-q", old, new])
        try run(Self.own, on: old)
        try Shell.must([moult, "replace", "--undo", old])
        let kept = try Shell.must(["grep", "-rl", "user data", shop.scratch.path(".old.db.moult")])
        #expect(!kept.isEmpty)
    }

    /// Only the rows of tables are counted, but everything else must be kept too.
    @Test(arguments: [
        "CREATE VIEW \"v\\351\" AS SELECT 1;", "CREATE INDEX \"i\\351\" ON item(name);",
        "CREATE VIRTUAL TABLE \"s\\351\" USING fts5(t); INSERT INTO \"s\\351\" VALUES(\"user data\");",
        "CREATE TABLE more(\"c\\351\"); INSERT INTO more VALUES(1);",
        "ALTER TABLE item ADD COLUMN \"c\\351\" DEFAULT 1;",
        "CREATE TABLE \"caf\\351\"(d);",
    ])
    func `an update keeps everything that has such a name, or refuses`(sql: String) throws {
        for number in 1...2 {
            try shop.pack("\(number).0.0", [.shared(Self.item + "INSERT INTO item VALUES('\(number)');")])
        }
        try shop.install("1.0.0")
        try run(sql, on: shop.path("app.db"))
        let before = try Files.read(shop.path("app.db"), limit: 1 << 24)
        let applied = try shop.apply("2.0.0")
        if applied.status == 0 {
            #expect(try Files.list(shop.path(".moult/quarantine")).count == 1, "\(applied)")
        } else {
            #expect(applied.status == 3 && applied.errors.contains("Nothing was changed"), "\(applied)")
            #expect(try Files.read(shop.path("app.db"), limit: 1 << 24) == before)
        }
    }

    @Test func `each of two such names is shown with its bytes`() throws {
        try begin()
        try run(
            "CREATE TABLE \"caf\\350\"(d); INSERT INTO \"caf\\350\" VALUES(\"more\"), (\"rows\");",
            on: shop.path("app.db"))
        let applied = try shop.apply("2.0.0")
        #expect(
            applied.output.contains("2 rows of caf\\xe8") && applied.output.contains("1 row of caf\\xe9"), "\(applied)")
    }

    @Test(arguments: [
        (own + "CREATE INDEX i ON \"caf\\351\"(d);", "caf\\xe9", "its name is not valid UTF-8"),
        (
            "CREATE TABLE more(\"c\\351\" UNIQUE); INSERT INTO more VALUES(1);", "more",
            "the name of a column is not valid UTF-8"
        ),
    ])
    func `inspect, diff, pack and replace handle such names`(_ sql: String, _ name: String, _ why: String) throws {
        let (old, new) = (shop.scratch.path("old.db"), shop.scratch.path("new.db"))
        for (file, row) in [(old, "1"), (new, "2")] {
            try Shell.must(["sqlite3", file, Self.item + "INSERT INTO item VALUES(\(row))"])
            try run(sql, on: file)
        }
        let moult = try Shop.command()
        let inspected = try Shell.must([moult, "inspect", old])
        #expect(inspected.contains(name) && inspected.contains(why), "\(inspected)")
        let compared = try Shell.run([moult, "diff", old, new])
        #expect(compared.status == 2 && compared.output.contains(name) && compared.output.contains(why), "\(compared)")
        try Shell.must([moult, "pack", "-q", new, "--product", "local.other", "-o", shop.scratch.path("other")])
        try Shell.must([moult, "replace", "-q", old, new, "--preserve", "item"])
        #expect(try Shop.sql(old, "SELECT name FROM item ORDER BY 1") == "1\n2\n")
        try Shell.must([moult, "replace", "-q", "--undo", old])
        #expect(try Shell.must(["sqlite3", old, ".dump"]).contains(sql.contains("user data") ? "user data" : "more"))
    }
}
