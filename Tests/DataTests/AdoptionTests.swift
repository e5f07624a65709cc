import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A file that moult did not create, or that belongs to a user, is kept before a release uses its path.
@Suite struct AdoptionTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let mine = "CREATE TABLE item(name TEXT PRIMARY KEY, cents INT); INSERT INTO item VALUES('MINE', 1);"
    static let shipped = "CREATE TABLE item(name TEXT PRIMARY KEY, cents INT); INSERT INTO item VALUES('SHIPPED', 5);"
    static let preserve: JSON = ["table": "item", "where": "cents < 5"]

    /// Packs a release with a database of this kind at `app.db`.
    private func release(_ version: String, _ kind: String, _ sql: String = shipped) throws {
        try shop.pack(version, [Shipped(name: "app", kind: kind, sql: sql)])
    }

    private func expectKept(_ file: String = "app.db", _ note: Comment? = nil) throws {
        #expect(try shop.foreign(file, "SELECT * FROM item") == "MINE|1\n", note)
    }

    /// Restores the kept file.
    private func restore(_ file: String = "app.db") throws -> Shell.Ended {
        let set = try shop.keptForeign(file).directory.split(separator: "/").last.map(String.init)
        return try shop.moult("quarantine", "--restore", #require(set))
    }

    @Test func `the first install of a shared database carries over the rows that its release preserves`() throws {
        try shop.sql("app.db", Self.mine + "INSERT INTO item VALUES('DEAR', 9);")
        try shop.pack("1.0.0", [.shared(Self.shipped, [Self.preserve])])
        try shop.install("1.0.0")
        #expect(try shop.read("app.db", "SELECT name FROM item ORDER BY name") == "MINE\nSHIPPED\n")
        #expect(try shop.foreign("app.db", "SELECT name FROM item ORDER BY name") == "DEAR\nMINE\n")
    }

    @Test func `a row that the new schema rejects does not block the first install`() throws {
        try shop.sql("app.db", Self.mine)
        try shop.pack(
            "1.0.0", [.shared("CREATE TABLE item(name TEXT PRIMARY KEY, cents INT CHECK(cents > 3));", [Self.preserve])]
        )
        try shop.install("1.0.0")
        #expect(try shop.read("app.db", "SELECT count(*) FROM item") == "0\n")
        #expect(try shop.rejected("app.db").contains("MINE"))
        try expectKept()
    }

    @Test func `a table with a different schema in the existing file does not block the first install`() throws {
        try shop.sql("app.db", "CREATE TABLE item(label TEXT); INSERT INTO item VALUES('MINE');")
        try shop.pack("1.0.0", [.shared(Self.shipped, [Self.preserve])])
        try shop.install("1.0.0")
        #expect(try shop.foreign("app.db", "SELECT * FROM item") == "MINE\n")
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `an existing file at the path of a shared, reference or cache database is kept`(kind: String) throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", kind, "CREATE TABLE other(x); INSERT INTO other VALUES('SHIPPED');")
        let plan = try Shop.last(shop.plan("1.0.0", "--json"))
        let reasons = (plan["effects"]?.array ?? []).compactMap { $0["change"]?["reason"]?.string }
        #expect(reasons.contains("foreign"), "the plan must say it")
        try shop.install("1.0.0")
        try expectKept()
        #expect(try shop.read("app.db", "SELECT * FROM other") == "SHIPPED\n")
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `rows that are only in the WAL are also kept`(kind: String) throws {
        try App.run(
            shop.path("app.db"), crash: true, "PRAGMA journal_mode = WAL", "CREATE TABLE item(name TEXT, cents INT)",
            "INSERT INTO item VALUES('MINE', 1)")
        try #require(try Files.facts(shop.path("app.db-wal"))?.kind == .file)
        try release("1.0.0", kind, "CREATE TABLE other(x);")
        try shop.install("1.0.0")
        try expectKept()
        #expect(try Files.facts(shop.path("app.db-wal")) == nil)
    }

    @Test func `a transaction that a crash left unfinished is rolled back before the file is kept`() throws {
        try shop.sql("app.db", Self.mine)
        try App.run(
            shop.path("app.db"), crash: true, "PRAGMA cache_size = 1", "BEGIN IMMEDIATE",
            "UPDATE item SET name = 'UNFINISHED'",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
                + "INSERT INTO item SELECT hex(randomblob(200)), 9 FROM n")
        try #require(try Files.facts(shop.path("app.db-journal"))?.kind == .file)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        try expectKept()
        #expect(try Files.facts(shop.path("app.db-journal")) == nil)
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `a release that adds a database keeps the file at its path`(kind: String) throws {
        try shop.pack("1.0.0", [.reference("CREATE TABLE food(x);")])
        try shop.install("1.0.0")
        try shop.sql("app.db", Self.mine)
        try shop.pack(
            "2.0.0",
            [.reference("CREATE TABLE food(x);"), Shipped(name: "app", kind: kind, sql: "CREATE TABLE other(x);")])
        try shop.install("2.0.0")
        try expectKept()
    }

    @Test func `a restore brings the kept file back, and keeps what was there`() throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "shared", "CREATE TABLE other(x);")
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO other VALUES('NEW')")
        let ended = try restore()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(
            try shop.read("app.db", "INSERT INTO item VALUES('LATER', 2); SELECT name FROM item ORDER BY name")
                == "LATER\nMINE\n")
        let replaced = try #require(try shop.kept("app").last)
        #expect(replaced.reason == "restored")
        #expect(try replaced.sql("app.db", "SELECT x FROM other") == "NEW\n")
    }

    /// A read-only database has no content of the app, and a cache loses it without a question.
    @Test(arguments: ["reference", "cache"])
    func `a kept file can be exported where it cannot be restored`(kind: String) throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", kind, "CREATE TABLE other(x);")
        try shop.install("1.0.0")
        let before = try shop.tree()
        let refused = try restore()
        #expect(refused.status == 3, "\(refused)")
        #expect(try shop.tree() == before)
        let command = try #require(refused.errors.firstRange(of: "moult quarantine --export FILE "))
        let advice = refused.errors[command.lowerBound...].replacing("FILE", with: shop.path("old.db"))
            .replacing("moult ", with: "\(try BuiltMoult.path()) ")
        try Shell.must(["sh", "-c", String(advice)])
        #expect(try shop.read("old.db", "SELECT * FROM item") == "MINE|1\n")
    }

    @Test func `a kept file from before moult is never removed by its age`() throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        for more in [[], ["--user-data"], ["app", "--user-data"]] {
            _ = try shop.moult(["quarantine", "--remove", "--older-than", "0"] + more)
            try expectKept()
        }
        let set = try #require(try shop.keptForeign("app.db").directory.split(separator: "/").last.map(String.init))
        try shop.must("quarantine", "--remove", set, "--older-than", "0", "--user-data")
        #expect(try shop.kept().isEmpty)
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `a file that is not a database is kept unchanged`(kind: String) throws {
        let text = "these are notes, and no database"
        try Files.writeNew(Array(text.utf8), to: shop.path("app.db"))
        try release("1.0.0", kind)
        try shop.install("1.0.0")
        let kept = "\(try shop.keptForeign("app.db").directory)/app.db"
        let bytes = try #require(try Files.read(kept, limit: 1000), "nothing is at \(kept)")
        #expect(String(decoding: bytes, as: UTF8.self) == text)
        #expect(try shop.read("app.db", "SELECT name FROM item") == "SHIPPED\n")
    }

    @Test func `a kept file is restored over a damaged database`() throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        try Files.replace(shop.path("app.db"), with: Array("garbage".utf8))
        let ended = try restore()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.read("app.db", "SELECT * FROM item") == "MINE|1\n")
        let damaged = try #require(try shop.kept("app").last)
        #expect(try Files.read("\(damaged.directory)/app.db", limit: 100) == Array("garbage".utf8))
    }

    @Test(arguments: ["shared", "cache"], ["delete", "wal"])
    func `a file that an app has open is kept, and the app reads the new content`(kind: String, mode: String) throws {
        try shop.sql("app.db", "PRAGMA journal_mode = \(mode);" + Self.mine)
        try release("1.0.0", kind, "CREATE TABLE other(x);")
        let app = try App(opens: shop.path("app.db"), "SELECT * FROM item")
        try shop.install("1.0.0")
        app.quit()
        #expect(try shop.read("app.db", "SELECT count(*) FROM other") == "0\n")
        #expect(try shop.read("app.db", "PRAGMA journal_mode") == "\(mode)\n")
        try expectKept()
    }

    /// When SQLite first opens an empty file, it deletes the `-wal`.
    @Test func `an empty file beside a -wal with rows is kept with the -wal`() throws {
        try App.run(shop.path("app.db"), crash: true, "PRAGMA journal_mode = WAL", "CREATE TABLE own(x)")
        try Shell.must(["truncate", "-s", "0", shop.path("app.db")])
        try Files.remove(shop.path("app.db-shm"))
        let before = try Files.read(shop.path("app.db-wal"), limit: 1 << 20)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        let set = try shop.keptForeign("app.db").directory
        #expect(try Files.read("\(set)/app.db-wal", limit: 1 << 20) == before)
        #expect(try Files.facts("\(set)/app.db")?.size == 0)
        #expect(try shop.read("app.db", "SELECT name FROM item") == "SHIPPED\n")
    }

    /// The app would go on writing to the file in quarantine.
    @Test(arguments: ["delete", "wal"]) func `a link does not replace a file that an app has open`(mode: String) throws
    {
        try shop.sql("app.db", "PRAGMA journal_mode = \(mode);" + Self.mine)
        try release("1.0.0", "reference", "CREATE TABLE other(x);")
        let app = try App(opens: shop.path("app.db"), "SELECT * FROM item")
        let ended = try shop.apply("1.0.0")
        #expect(ended.status == 75, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("pid \(app.pid)"), "the message must name the process: \(ended.errors)")
        app.quit()
        #expect(try shop.read("app.db", "PRAGMA journal_mode; SELECT name FROM item") == "\(mode)\nMINE\n")
        try shop.install("1.0.0")
        try expectKept()
    }

    private static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, cents INT);"

    /// Installs a release with a cache at `app.db` whose schema matches the file, and then a release with a different cache
    /// there. The file contains `MINE`; it must be adopted and not removed.
    private func expectNotRemovableAsCache(_ fitting: String, _ unfit: String) throws {
        try release(fitting, "cache", Self.item)
        try shop.install(fitting)
        try expectKept()
        #expect(try shop.read("app.db", "SELECT count(*) FROM item") == "0\n")
        try release(unfit, "cache", "CREATE TABLE other(x);")
        try shop.install(unfit)
        let ended = try shop.moult("quarantine", "--remove", "--older-than", "0")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.kept().map(\.reason) == ["foreign"])
        try expectKept()
    }

    /// An encrypted database in WAL mode looks like this after its program has crashed.
    @Test func `a file that is not a database is kept with its -wal`() throws {
        let file = shop.path("app.db")
        try Files.ensureDirectory(shop.store)
        let bytes = [UInt8](repeating: 7, count: 5000)
        try Files.writeNew(bytes, to: file)
        try Files.writeNew(Array("the WAL".utf8), to: "\(file)-wal")
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        let set = try shop.keptForeign("app.db").directory
        #expect(try Files.read("\(set)/app.db", limit: 10_000) == bytes)
        #expect(try Files.read("\(set)/app.db-wal", limit: 100) == Array("the WAL".utf8))
        #expect(try shop.read("app.db", "SELECT name FROM item") == "SHIPPED\n")
    }

    @Test func `a file that existed before moult does not become a cache even if its schema matches`() throws {
        try shop.sql("app.db", Self.mine)
        try expectNotRemovableAsCache("1.0.0", "2.0.0")
    }

    @Test func `a user database whose release was removed does not become a cache even if its schema matches`()
        throws
    {
        try Settings.rewrite(StoreLayout(root: shop.store), "keep", 1)
        try Settings.rewrite(StoreLayout(root: shop.store), "minimumAge", 0)
        try release("1.0.0", "user", Self.item)
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1)")
        for version in ["2.0.0", "3.0.0"] {
            try shop.pack(version, [.reference("CREATE TABLE food(x); INSERT INTO food VALUES('\(version)');")])
            try shop.install(version)
        }
        let kept = try Files.list("\(shop.store)/.moult/generations")
        try #require(!kept.contains { $0.hasPrefix("1.0.0") }, "\(kept)")
        try expectNotRemovableAsCache("4.0.0", "5.0.0")
    }

    @Test(arguments: [true, false])
    func `a file at the path of a cache outside the store is kept there`(isDatabase: Bool) throws {
        let caches = shop.scratch.path("caches")
        try Files.makeDirectory(caches, mode: 0o755)
        try Settings.rewrite(StoreLayout(root: shop.store), "cacheRoot", .string(caches))
        let file = "\(caches)/app.db"
        if isDatabase {
            try Shell.must(["sqlite3", file, Self.mine])
        } else {
            try Files.writeNew(Array("these are notes".utf8), to: file)
        }
        try release("1.0.0", "cache", "CREATE TABLE other(x);")
        #expect(try shop.plan("1.0.0").status == 2)
        try shop.install("1.0.0")
        #expect(try Shell.must(["sqlite3", file, "SELECT count(*) FROM other"]) == "0\n")
        let sets = try Shop.last(shop.moult("quarantine", "--json"))["quarantine"]?.array ?? []
        #expect(sets.map { $0["reason"]?.string } == ["foreign"])
        let kept = try #require(sets.first?["file"]?.string)
        #expect(kept.hasPrefix("\(caches)/"))
        if isDatabase {
            #expect(try Shell.must(["sqlite3", kept, "SELECT * FROM item"]) == "MINE|1\n")
        } else {
            #expect(try Files.read(kept, limit: 100) == Array("these are notes".utf8))
        }
    }

    @Test func `a cache that a release omitted is kept for a later release if its schema matches`() throws {
        try release("1.0.0", "cache", Self.item)
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1)")
        try shop.pack("2.0.0", [.reference("CREATE TABLE food(x);")])
        try shop.install("2.0.0")
        try release("3.0.0", "cache", Self.item)
        try shop.install("3.0.0")
        #expect(try shop.read("app.db", "SELECT * FROM item") == "MINE|1\n")
    }

    // MARK: changes of kind

    static let takeovers: [(old: String, new: String)] = [
        ("user", "shared"), ("user", "reference"), ("user", "cache"), ("shared", "reference"), ("shared", "cache"),
    ]

    /// Installs a first release, writes `DIARY` to `app.db`, and packs a second release that changes the kind of the database.
    private func changeKind(_ change: (old: String, new: String)) throws {
        try release("1.0.0", change.old, "CREATE TABLE note(t);")
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('DIARY')")
        try release("2.0.0", change.new, "CREATE TABLE note(t); CREATE TABLE more(x);")
    }

    @Test(arguments: takeovers)
    func `a release changes the kind of a database only with --take-over, which keeps the old file`(
        _ change: (old: String, new: String)
    ) throws {
        try changeKind(change)
        let before = try shop.tree()
        #expect(try shop.plan("2.0.0").status == 3)
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3)
        #expect(ended.errors.contains("--take-over app"), "the message must name the option: \(ended.errors)")
        #expect(try shop.tree() == before)
        #expect(try shop.apply("2.0.0", "--take-over", "other").status != 0)
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
        try shop.install("2.0.0", "--take-over", "app")
        let kept = try shop.onlyKept("app")
        #expect(kept.reason == "taken-over")
        #expect(kept.release == "1.0.0")
        #expect(try kept.sql("app.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("app.db", "SELECT count(*) FROM more") == "0\n")
    }

    @Test func `a misspelled --take-over is refused even if the release is already installed`() throws {
        for version in ["1.0.0", "2.0.0"] {
            try release(version, "shared", "CREATE TABLE note(t); INSERT INTO note VALUES('\(version)')")
            try shop.install(version)
        }
        let commands = [
            ["apply", shop.manifest("2.0.0"), "--take-over", "appp"], ["rollback", "--take-over", "appp"],
            ["rollback", "--dry-run", "--take-over", "appp"],
        ]
        for arguments in commands {
            let ended = try shop.moult(arguments)
            #expect(ended.status == 3, "\(arguments)")
            #expect(ended.errors.contains("Did you mean \"app\"?"), "\(ended.errors)")
        }
        try shop.install("2.0.0", "--take-over", "app")
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `a user database that a release omits is not lost if a later release uses its path`(kind: String) throws {
        try release("1.0.0", "user", "CREATE TABLE note(t);")
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('DIARY')")
        try shop.pack("2.0.0", [.reference("CREATE TABLE food(x);")])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
        try shop.pack(
            "3.0.0",
            [.reference("CREATE TABLE food(x);"), Shipped(name: "app", kind: kind, sql: "CREATE TABLE other(x);")])
        let ended = try shop.apply("3.0.0")
        #expect([0, 3].contains(ended.status), "\(ended.errors)")
        #expect(try !shop.databases(with: "DIARY").isEmpty)
    }
}
