import MoultBasics
import MoultFiles
import MoultStore
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

    private func expectAdopted(_ generation: String = "0+adopted", _ file: String = "app.db", _ note: Comment? = nil)
        throws
    {
        #expect(try shop.adopted(file, "SELECT * FROM item", in: generation) == "MINE|1\n", note)
    }

    @Test func `the first install of a shared database keeps an existing file at its path`() throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        try expectAdopted()
        #expect(try shop.read("app.db", "SELECT name FROM item") == "SHIPPED\n")
    }

    @Test func `the first install of a shared database carries over the rows that its release preserves`() throws {
        try shop.sql("app.db", Self.mine + "INSERT INTO item VALUES('DEAR', 9);")
        try shop.pack("1.0.0", [.shared(Self.shipped, [Self.preserve])])
        try shop.install("1.0.0")
        #expect(try shop.read("app.db", "SELECT name FROM item ORDER BY name") == "MINE\nSHIPPED\n")
        #expect(try shop.adopted("app.db", "SELECT name FROM item ORDER BY name") == "DEAR\nMINE\n")
    }

    @Test func `a row that the new schema rejects does not block an adoption`() throws {
        try shop.sql("app.db", Self.mine)
        try shop.pack(
            "1.0.0", [.shared("CREATE TABLE item(name TEXT PRIMARY KEY, cents INT CHECK(cents > 3));", [Self.preserve])]
        )
        try shop.install("1.0.0")
        #expect(try shop.read("app.db", "SELECT count(*) FROM item") == "0\n")
        #expect(try shop.rejected("app.db").contains("MINE"))
        try expectAdopted()
    }

    @Test func `a table with a different schema in the existing file does not block its adoption`() throws {
        try shop.sql("app.db", "CREATE TABLE item(label TEXT); INSERT INTO item VALUES('MINE');")
        try shop.pack("1.0.0", [.shared(Self.shipped, [Self.preserve])])
        try shop.install("1.0.0")
        #expect(try shop.adopted("app.db", "SELECT * FROM item") == "MINE\n")
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `an existing file at the path of a shared, reference or cache database is adopted`(kind: String) throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", kind, "CREATE TABLE other(x); INSERT INTO other VALUES('SHIPPED');")
        let plan = try Shop.last(shop.plan("1.0.0", "--json"))
        let changes = (plan["effects"]?.array ?? []).compactMap { $0["change"]?["do"]?.string }
        #expect(changes.contains("adopt"), "the plan must say it: \(changes)")
        try shop.install("1.0.0")
        try expectAdopted()
        #expect(try shop.read("app.db", "SELECT * FROM other") == "SHIPPED\n")
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `rows that are only in the WAL are also adopted`(kind: String) throws {
        try App.run(
            shop.path("app.db"), crash: true, "PRAGMA journal_mode = WAL", "CREATE TABLE item(name TEXT, cents INT)",
            "INSERT INTO item VALUES('MINE', 1)")
        try #require(try Files.facts(shop.path("app.db-wal"))?.kind == .file)
        try release("1.0.0", kind, "CREATE TABLE other(x);")
        try shop.install("1.0.0")
        try expectAdopted()
        #expect(try Files.facts(shop.path("app.db-wal")) == nil)
    }

    @Test func `a transaction that a crash left unfinished is rolled back before the file is adopted`() throws {
        try shop.sql("app.db", Self.mine)
        try App.run(
            shop.path("app.db"), crash: true, "PRAGMA cache_size = 1", "BEGIN IMMEDIATE",
            "UPDATE item SET name = 'UNFINISHED'",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
                + "INSERT INTO item SELECT hex(randomblob(200)), 9 FROM n")
        try #require(try Files.facts(shop.path("app.db-journal"))?.kind == .file)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        try expectAdopted()
        #expect(try Files.facts(shop.path("app.db-journal")) == nil)
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `a release that adds a database adopts the file at its path`(kind: String) throws {
        try shop.pack("1.0.0", [.reference("CREATE TABLE food(x);")])
        try shop.install("1.0.0")
        try shop.sql("app.db", Self.mine)
        try shop.pack(
            "2.0.0",
            [.reference("CREATE TABLE food(x);"), Shipped(name: "app", kind: kind, sql: "CREATE TABLE other(x);")])
        try shop.install("2.0.0")
        try expectAdopted()
    }

    @Test func `a second adoption keeps the first adopted file`() throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        try shop.sql("more.db", Self.mine)
        try shop.pack("2.0.0", [.shared(Self.shipped), .shared(Self.shipped, name: "more")])
        try shop.install("2.0.0")
        try expectAdopted()
        try expectAdopted("0+adopted.2", "more.db")
    }

    @Test func `three files are adopted in one generation`() throws {
        let names = ["app", "more", "most"]
        for name in names { try shop.sql("\(name).db", Self.mine) }
        try shop.pack("1.0.0", names.map { .shared(Self.shipped, name: $0) })
        try shop.install("1.0.0")
        for name in names { try expectAdopted("0+adopted", "\(name).db") }
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `rollback to the adopted generation restores a plain writable file`(kind: String) throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", kind, "CREATE TABLE other(x);")
        try shop.install("1.0.0")
        let ended = try shop.moult("rollback", "--to", "0+adopted")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try Files.facts(shop.path("app.db"))?.kind == .file)
        #expect(
            try shop.read("app.db", "INSERT INTO item VALUES('LATER', 2); SELECT name FROM item ORDER BY name")
                == "LATER\nMINE\n")
    }

    @Test func `rollback without --to never returns to the adopted generation`() throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        let ended = try shop.moult("rollback")
        #expect(ended.status == 3)
        try expectAdopted()
        #expect(try shop.read("app.db", "SELECT name FROM item") == "SHIPPED\n")
    }

    @Test func `status lists the adopted generation`() throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        #expect(try shop.moult("status").output.contains("0+adopted"))
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `a file that is not a database is kept unchanged`(kind: String) throws {
        let text = "these are notes, and no database"
        try Files.writeNew(Array(text.utf8), to: shop.path("app.db"))
        try release("1.0.0", kind)
        let ended = try shop.apply("1.0.0")
        let place = ended.status == 0 ? ".moult/generations/0+adopted/app.db" : "app.db"
        #expect([0, 3].contains(ended.status), "\(ended.errors)")
        let bytes = try #require(try Files.read(shop.path(place), limit: 1000), "nothing is at \(place)")
        #expect(String(decoding: bytes, as: UTF8.self) == text)
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `a rollback restores a file that is not a database, or is refused`(kind: String) throws {
        let text = "these are notes, and no database"
        try Files.writeNew(Array(text.utf8), to: shop.path("app.db"))
        try release("1.0.0", kind)
        try shop.install("1.0.0")
        let before = try shop.tree()
        let ended = try shop.moult("rollback", "--to", "0+adopted")
        // A rollback cannot put this file in place of a database to which an app may be writing.
        #expect(ended.status == (kind == "shared" ? 3 : 0), "\(ended.errors)")
        if kind == "shared" {
            #expect(try shop.tree() == before)
            #expect(ended.errors.contains("cp "), "\(ended.errors)")
        } else {
            let bytes = try #require(try Files.read(shop.path("app.db"), limit: 1000))
            #expect(String(decoding: bytes, as: UTF8.self) == text)
        }
    }

    @Test func `a file at the path of a new cache is adopted and not also put in quarantine`() throws {
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        try shop.sql("other.db", Self.mine)
        let more: [JSON.Member] = [.init("path", "other.db")]
        try shop.pack("2.0.0", [Shipped(name: "thumbs", kind: "cache", sql: "CREATE TABLE thumb(x);", more: more)])
        try shop.install("2.0.0")
        try expectAdopted("0+adopted", "other.db")
        #expect(try shop.kept().isEmpty)
        #expect(try shop.read("app.db", "SELECT name FROM item") == "SHIPPED\n")
    }

    @Test func `a rollback from a damaged database is refused, and the error contains the reset command`() throws {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "shared")
        try shop.install("1.0.0")
        try Files.replace(shop.path("app.db"), with: Array("garbage".utf8))
        let before = try shop.tree()
        let ended = try shop.moult("rollback", "--to", "0+adopted")
        #expect(ended.status == 3, "\(ended.errors)")
        #expect(ended.errors.contains("moult reset app --set-user-data-aside"), "\(ended.errors)")
        #expect(try shop.tree() == before)
        #expect(try shop.moult("reset", "app", "--set-user-data-aside").status == 0)
        #expect(try shop.moult("rollback", "--to", "0+adopted").status == 0)
        #expect(try shop.read("app.db", "SELECT * FROM item") == "MINE|1\n")
    }

    @Test(arguments: ["delete", "wal"])
    func `a file that an app has open becomes a shared database, and the app reads the new content`(mode: String) throws
    {
        try shop.sql("app.db", "PRAGMA journal_mode = \(mode);" + Self.mine)
        try release("1.0.0", "shared", "CREATE TABLE other(x);")
        let app = try App(opens: shop.path("app.db"), "SELECT * FROM item")
        try shop.install("1.0.0")
        app.quit()
        #expect(try shop.read("app.db", "PRAGMA journal_mode") == "\(mode)\n")
        try expectAdopted()
    }

    /// When SQLite first opens an empty file, it deletes the `-wal`.
    @Test func `an empty file beside a -wal with rows is refused, and the -wal stays`() throws {
        try App.run(shop.path("app.db"), crash: true, "PRAGMA journal_mode = WAL", "CREATE TABLE own(x)")
        try Shell.must(["truncate", "-s", "0", shop.path("app.db")])
        try Files.remove(shop.path("app.db-shm"))
        let before = try Shell.must(["sha256sum", shop.path("app.db-wal")])
        try release("1.0.0", "shared")
        let ended = try shop.apply("1.0.0")
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.errors.contains("app.db-wal"), "\(ended)")
        #expect(try Shell.must(["sha256sum", shop.path("app.db-wal")]) == before)
    }

    @Test(arguments: ["reference", "cache"], ["delete", "wal"])
    func `a file that an app has open is not adopted`(kind: String, mode: String) throws {
        try shop.sql("app.db", "PRAGMA journal_mode = \(mode);" + Self.mine)
        try release("1.0.0", kind, "CREATE TABLE other(x);")
        let app = try App(opens: shop.path("app.db"), "SELECT * FROM item")
        let ended = try shop.apply("1.0.0")
        #expect(ended.status == 75, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("pid \(app.pid)"), "the message must name the process: \(ended.errors)")
        app.quit()
        #expect(try shop.read("app.db", "PRAGMA journal_mode; SELECT name FROM item") == "\(mode)\nMINE\n")
        try shop.install("1.0.0")
        try expectAdopted()
    }

    private static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, cents INT);"

    /// Installs a release with a cache at `app.db` whose schema matches the file, and then a release with a different cache
    /// there. The file contains `MINE`; it must be adopted and not removed.
    private func expectNotRemovableAsCache(_ fitting: String, _ unfit: String) throws {
        try release(fitting, "cache", Self.item)
        try shop.install(fitting)
        try expectAdopted()
        #expect(try shop.read("app.db", "SELECT count(*) FROM item") == "0\n")
        try release(unfit, "cache", "CREATE TABLE other(x);")
        try shop.install(unfit)
        let ended = try shop.moult("quarantine", "--remove", "--older-than", "0")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.kept().isEmpty)
        try expectAdopted()
        #expect(try shop.moult("rollback", "--to", "0+adopted").status == 0)
        #expect(try shop.read("app.db", "SELECT * FROM item") == "MINE|1\n")
    }

    /// An encrypted database in WAL mode looks like this after its program has crashed.
    @Test func `a file that is not a database is not adopted while a WAL is next to it`() throws {
        let file = shop.path("app.db")
        try Files.ensureDirectory(shop.store)
        try Files.writeNew([UInt8](repeating: 7, count: 5000), to: file)
        try Files.writeNew(Array("the WAL".utf8), to: "\(file)-wal")
        try release("1.0.0", "shared")
        let ended = try shop.apply("1.0.0")
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.errors.contains("\(file)-wal may hold part of its content"), "\(ended)")
        #expect(try Files.read("\(file)-wal", limit: 100) == Array("the WAL".utf8))
        try Files.remove("\(file)-wal")
        // An empty journal has no content.
        try Files.writeNew([], to: "\(file)-journal")
        try shop.install("1.0.0")
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

    @Test func `a file restored from an adopted generation does not become a cache even if its schema matches`()
        throws
    {
        try shop.sql("app.db", Self.mine)
        try release("1.0.0", "cache", Self.item)
        try shop.install("1.0.0")
        try #require(try shop.moult("rollback", "--to", "0+adopted").status == 0)
        try shop.sql("app.db", "UPDATE item SET name = 'LATER'")
        try #require(try shop.moult("unhold", "--all").status == 0)
        try shop.install("1.0.0")
        #expect(try shop.read("app.db", "SELECT count(*) FROM item") == "0\n")
        #expect(try shop.adopted("app.db", "SELECT name FROM item", in: "0+adopted.2") == "LATER\n")
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

    @Test(arguments: takeovers) func `a release cannot change the kind of a database without --take-over`(
        _ change: (old: String, new: String)
    ) throws {
        try changeKind(change)
        let before = try shop.tree()
        #expect(try shop.plan("2.0.0").status == 3)
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3)
        #expect(ended.errors.contains("--take-over app"), "the message must name the option: \(ended.errors)")
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.tree() == before)
    }

    @Test(arguments: takeovers)
    func `--take-over keeps the old file in quarantine`(_ change: (old: String, new: String)) throws {
        try changeKind(change)
        try shop.install("2.0.0", "--take-over", "app")
        let kept = try shop.onlyKept("app")
        #expect(kept.reason == "taken-over")
        #expect(kept.release == "1.0.0")
        #expect(try kept.sql("app.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("app.db", "SELECT count(*) FROM more") == "0\n")
    }

    @Test(arguments: takeovers)
    func `an update is refused if --take-over names a different database`(_ change: (old: String, new: String)) throws {
        try changeKind(change)
        #expect(try shop.apply("2.0.0", "--take-over", "other").status != 0)
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
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
