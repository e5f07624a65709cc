import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Quarantine is part of every backup, keeps user data until the operator removes it, and can be restored.
@Suite struct QuarantineTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    static let own: JSON = ["table": "item", "where": "mine = 1"]

    /// Fills the quarantine: an update keeps a shared database because of one row of the app, and a reset keeps a user
    /// database.
    func begin(beforeReset: () throws -> Void = {}) throws {
        try shop.pack(
            "1.0.0",
            [
                .shared(Self.item + "INSERT INTO item VALUES('ONE', 0);", [Self.own]), .user("CREATE TABLE note(t);"),
                .cache("CREATE TABLE thumb(x);"),
            ])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1), ('APP', 0)")
        try shop.sql("diary.db", "INSERT INTO note VALUES('DIARY')")
        try shop.sql("cache.db", "INSERT INTO thumb VALUES('THUMB')")
        try shop.pack(
            "2.0.0",
            [
                .shared(Self.item + "INSERT INTO item VALUES('TWO', 0);", [Self.own]), .user("CREATE TABLE note(t);"),
                .cache("CREATE TABLE thumb(x, y);"),
            ])
        try shop.install("2.0.0")
        try beforeReset()
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside", "--reason", "a test").status == 0)
    }

    // MARK: Counts

    @Test func `the list counts the rows of full-text tables, and not those in tables that moult adds`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE note(t);"), .shared("CREATE TABLE item(name);")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "CREATE VIRTUAL TABLE own USING fts5(x); INSERT INTO own VALUES('a'), ('b'), ('c')")
        try shop.sql("app.db", "INSERT INTO item VALUES(1), (2)")
        for name in ["diary", "app"] { try shop.must("reset", name, "--set-user-data-aside") }
        let sets = try Shop.last(try shop.moult("quarantine", "--json"))["quarantine"]?.array ?? []
        let rows = sets.compactMap { set in set["rows"]?.members?.compactMap { $0.value.integer }.reduce(0, +) }
        #expect(rows.sorted() == [2, 3], "\(sets)")
    }

    @Test func `the rows of a database that does not fit the installed release are counted`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE note(t);"), .shared("CREATE TABLE item(name);")])
        try shop.install("1.0.0")
        for (file, table) in [("diary", "note"), ("app", "item")] {
            try shop.sql("\(file).db", "DROP TABLE \(table); CREATE TABLE own(x); INSERT INTO own VALUES(1), (2)")
            try shop.must("reset", file, "--set-user-data-aside")
            #expect(try list().last?["rows"]?.line == #"{"own":2}"#, "\(file)")
        }
    }

    @Test func `an export does not go next to a sidecar of another database`() throws {
        try begin()
        let file = shop.scratch.path("export.db")
        for suffix in ["-wal", "-journal", "-shm"] {
            try Files.writeNew([1], to: file + suffix)
            let ended = try shop.moult("quarantine", "--export", file, "diary")
            #expect(ended.status == 3 && ended.errors.contains("\(file)\(suffix) exists"), "\(ended)")
            #expect(try Files.facts(file) == nil)
            try Shell.must([
                "sh", "-ec", String(try #require(ended.errors.split(separator: "move its file away: ").last)),
            ])
        }
        try shop.must("quarantine", "--export", file, "diary")
    }

    // MARK: Backups

    private func tags() throws -> String {
        try Shell.must([
            "find", shop.path(".moult/quarantine"), shop.path(".moult/transactions"), "-name", "CACHEDIR.TAG",
        ])
    }

    @Test func `a CACHEDIR.TAG that an older version of moult left is removed`() throws {
        try begin()
        for directory in ["quarantine", "transactions"] {
            try Files.replace(
                shop.path(".moult/\(directory)/CACHEDIR.TAG"),
                with: Array("Signature: 8a477f597d28d172789f06886806bc55\n".utf8))
        }
        try shop.pack("3.0.0", [.shared(Self.item, [Self.own]), .user("CREATE TABLE note(t);")])
        try shop.install("3.0.0")
        #expect(try tags() == "")
    }

    @Test func `a backup that excludes cache directories includes the quarantine`() throws {
        try begin()
        let archive = shop.scratch.path("backup.tar")
        try Shell.must([
            "tar", "--exclude-caches", "--exclude-caches-all", "-cf", archive, "-C", shop.scratch.path, "store",
        ])
        let list = try Shell.must(["tar", "-tf", archive])
        #expect(list.contains("-diary/diary.db\n"))
        #expect(list.contains("-app/app.db\n"))
    }

    // MARK: The command

    func list(_ words: String...) throws -> [JSON] {
        let ended = try shop.moult(["quarantine", "--json"] + words)
        #expect(ended.status == 0, "\(ended.errors)")
        let json = try Shop.last(ended)
        #expect(json["format"]?.integer == 1)
        return json["quarantine"]?.array ?? []
    }

    @Test(arguments: ["0, 0.5", "0.5, 0", "-1, -1.5", "9007199254740993, 9007199254740992.0"])
    func `a database with an index over both integers and reals is set aside`(values: String) throws {
        try shop.pack("1.0.0", [.shared("CREATE TABLE item(v);")])
        try shop.install("1.0.0")
        let rows = values.split(separator: ",").map { "(\($0))" }.joined(separator: ",")
        try shop.sql("app.db", "INSERT INTO item VALUES\(rows); CREATE INDEX own ON item(v);")
        let ended = try shop.moult("reset", "app", "--set-user-data-aside")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT count(*) FROM item") == "2\n")
    }

    @Test func `a set in quarantine can be selected by its database or by its ID`() throws {
        try begin()
        let byName = try list("app")
        #expect(byName.count == 1)
        let id = try #require(byName.first?["id"]?.string)
        #expect(try list(id) == byName)
        #expect(try shop.moult("quarantine", "nothing").status != 0)
    }

    @Test func `restoring rows keeps rows that were written later`() throws {
        try begin()
        try shop.sql("app.db", "INSERT INTO item VALUES('APP', 5), ('LATER', 1)")
        let ended = try shop.moult("quarantine", "--restore", "app", "--table", "item")
        #expect([0, 3].contains(ended.status), "\(ended.errors)")
        #expect(try shop.read("app.db", "SELECT mine FROM item WHERE name = 'LATER'") == "1\n")
        #expect(try !shop.databases(with: "APP").isEmpty)
        #expect(try shop.read("app.db", "SELECT mine FROM item WHERE name = 'APP'") == "5\n")
    }

    func restoreItems() throws -> JSON {
        let ended = try shop.moult("quarantine", "--restore", "app", "--table", "item", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        return try Shop.last(ended)
    }

    @Test func `rows that a release shipped are not restored`() throws {
        try begin()
        try shop.sql("app.db", "DELETE FROM item WHERE name = 'TWO'")
        #expect(try restoreItems()["carried"]?.integer == 1)
        #expect(try shop.read("app.db", "SELECT name FROM item ORDER BY name") == "APP\nMINE\n")
        #expect(try shop.rejected("app.db") == "")
    }

    @Test func `rows are restored or rejected only once`() throws {
        try begin()
        try shop.sql("app.db", "INSERT INTO item VALUES('APP', 5)")
        #expect(try Counts(restoreItems()) == Counts(rejected: 1))
        let rejected = try shop.rejected("app.db")
        #expect(rejected.contains("APP"), "\(rejected)")
        #expect(try Counts(restoreItems()) == Counts())
        #expect(try shop.rejected("app.db") == rejected)
    }

    @Test func `the history names the restored table and the number of rows`() throws {
        try begin()
        #expect(try restoreItems()["carried"]?.integer == 1)
        let entries = try Shop.last(shop.moult("history", "--json"))["entries"]?.array ?? []
        let entry = try #require(entries.first)
        #expect(entry["action"]?.string == "restore app")
        #expect(entry["reason"]?.string?.hasPrefix("rows of item from ") == true)
        #expect(Counts.inResult(entry, "app") == ["item": Counts(carried: 1)])
        let text = try shop.moult("history").output
        #expect(text.contains("app: 1 row carried over\n"), "\(text)")
        let kept = try shop.onlyKept("app").directory
        #expect(text.contains("app: 1 row carried over, 1 row kept in quarantine"), "\(text)")
        #expect(text.contains("in quarantine: ") && text.contains(Files.name(of: kept)), "\(text)")
    }

    @Test(arguments: ["moult_release", "moult_rejected", "nothing"])
    func `restoring a missing table or a table that belongs to moult is refused`(table: String) throws {
        try begin()
        let before = try shop.tree()
        let ended = try shop.moult("quarantine", "--restore", "app", "--table", table)
        #expect(ended.status == 3, "\(ended.errors)")
        #expect(try shop.tree() == before)
    }

    @Test(arguments: ["delete", "persist", "truncate", "wal"])
    func `rows are restored while a reader is active, in each journal mode`(mode: String) throws {
        try begin()
        let app = try App(
            opens: shop.path("app.db"), "PRAGMA journal_mode = \(mode)", "INSERT INTO item VALUES('LATER', 1)")
        #expect(try restoreItems()["carried"]?.integer == 1)
        app.crash()
        #expect(try shop.read("app.db", "SELECT name FROM item ORDER BY name") == "APP\nLATER\nMINE\nTWO\n")
        #expect(try shop.read("app.db", "PRAGMA journal_mode") == (mode == "wal" ? "wal\n" : "delete\n"))
    }

    @Test func `an exclusive lock of an app prevents restoring rows`() throws {
        try begin()
        let app = try App(
            opens: shop.path("app.db"), "PRAGMA locking_mode = EXCLUSIVE", "INSERT INTO item VALUES('LATER', 1)")
        let ended = try shop.moult("quarantine", "--restore", "app", "--table", "item")
        #expect(ended.status == 75, "\(ended.output)\(ended.errors)")
        app.quit()
        #expect(try restoreItems()["carried"]?.integer == 1)
    }

    // MARK: Export

    @Test(arguments: ["600", "640"]) func `an export has the mode of the old file`(mode: String) throws {
        try shop.pack("1.0.0", [.shared(Self.item, [Self.own])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('APP', 0)")
        try Shell.must(["chmod", mode, shop.path("app.db")])
        try shop.must("reset", "app", "--set-user-data-aside")
        let file = shop.scratch.path("export.db")
        let ended = try shop.moult("quarantine", "--export", file, "app")
        #expect(ended.status == 0, "\(ended)")
        let kept = try Files.facts("\(try shop.onlyKept("app").directory)/app.db")
        #expect(kept?.mode == 0o600)
        #expect(String(try Files.facts(file)?.mode ?? 0, radix: 8) == mode)
        #expect(try Shop.sql(file, "SELECT name FROM item") == "APP\n")
    }

    @Test func `an export does not follow a link`() throws {
        try begin()
        let (link, target) = (shop.scratch.path("export.db"), shop.scratch.path("elsewhere.db"))
        try Files.symlink(to: target, at: link)
        #expect(try shop.moult("quarantine", "--export", link, "app").status == 3)
        #expect(try Files.facts(target) == nil)
    }

    @Test func `restoring rows warns about values whose column is now generated`() throws {
        let (one, two) = (
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);", "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b AS (a * 2));"
        )
        try shop.pack("1.0.0", [.user(one + "PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO t VALUES(1, 2, 9)")
        let change =
            "CREATE TABLE n(id INTEGER PRIMARY KEY, a, b AS (a * 2)); INSERT INTO n(id, a) SELECT id, a FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t;"
        try shop.pack(
            "2.0.0", [.user(two + "PRAGMA user_version = 2;", ["m/2.sql": change + "PRAGMA user_version = 2;\n"])])
        try shop.install("2.0.0")
        let set = Files.name(of: try shop.onlyKept("diary").directory)
        try shop.sql("diary.db", "DELETE FROM t")
        let ended = try shop.moult("quarantine", "--restore", "diary", "--table", "t")
        #expect(ended.status == 0, "\(ended)")
        #expect(
            ended.errors.replacing("\n ", with: "").contains(
                "t has generated columns in release 2.0.0: b. The restored rows have computed values there, and the old values are only in \(set)"
            ),
            "\(ended)")
        #expect(try shop.read("diary.db", "SELECT * FROM t") == "1|2|4\n")
    }
}
