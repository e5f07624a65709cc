import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A release that omits a writable database leaves the file in the store, and the file still belongs to the app or the
/// user: a later release that uses the path or the name of the database is treated as if no release had omitted the
/// database.
@Suite struct OmittedDatabaseTests {
    let shop: Shop

    init() throws {
        shop = try Shop()
        try Settings.rewrite(StoreLayout(root: shop.store), "keep", 10)
    }

    static let note = "CREATE TABLE note(t TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    static let own: JSON = ["table": "note", "where": "mine = 1"]
    static let food = Shipped.reference("CREATE TABLE food(x);")

    private func app(_ kind: String, _ more: String = "", at path: String = "app.db") -> Shipped {
        var app = Shipped(name: "app", kind: kind, sql: Self.note + more, more: [.init("path", .string(path))])
        if kind == "shared" { app.more.append(.init("preserve", [Self.own])) }
        return app
    }

    /// Installs a release, writes `DIARY` to the database `app`, then installs a second release that omits that database.
    private func begin(_ kind: String) throws {
        try shop.pack("1.0.0", [app(kind), Self.food])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('DIARY', 1)")
        try shop.pack("2.0.0", [Self.food])
        try shop.install("2.0.0")
    }

    private func expectRefused(_ version: String, _ advice: String = "--take-over app") throws {
        let before = try shop.tree()
        #expect(try shop.plan(version).status == 3)
        let ended = try shop.apply(version)
        #expect(ended.status == 3, "\(ended.output)")
        #expect(ended.errors.contains(advice), "\(ended.errors)")
        #expect(try shop.tree() == before)
    }

    @Test(arguments: AdoptionTests.takeovers)
    func `a release cannot use the path of an omitted database without --take-over`(
        _ change: (old: String, new: String)
    ) throws {
        try begin(change.old)
        try shop.pack("3.0.0", [app(change.new, "INSERT INTO note VALUES('SHIPPED', 0);"), Self.food])
        try expectRefused("3.0.0")
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
        try shop.install("3.0.0", "--take-over", "app")
        let kept = try shop.onlyKept("app")
        #expect(kept.reason == "taken-over")
        #expect(try kept.sql("app.db", "SELECT t FROM note") == "DIARY\n")
        #expect(["user", "shared"].contains(kept.record["kind"]?.string))
    }

    @Test(arguments: ["user", "shared"], ["app", "other"])
    func `with cacheRoot, a cache does not silently replace a database with app data`(kind: String, name: String) throws
    {
        let caches = shop.scratch.path("caches")
        try Files.makeDirectory(caches, mode: 0o755)
        try Settings.rewrite(StoreLayout(root: shop.store), "cacheRoot", .string(caches))
        try shop.pack("1.0.0", [app(kind), Self.food])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('DIARY', 1)")
        let cache = Shipped(name: name, kind: "cache", sql: Self.note, more: [.init("path", "app.db")])
        try shop.pack("2.0.0", [cache, Self.food])
        let ended = try shop.apply("2.0.0")
        // Under another name, the cache does not take the place of the database, which is omitted.
        #expect(ended.status == (name == "app" ? 3 : 0), "\(ended)")
        #expect(ended.errors.contains(shop.path("app.db")), "\(ended)")
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
    }

    @Test(arguments: ["user", "shared"], ["app", "other"])
    func `an update and its plan name the file of an omitted database, and of one that gets another name`(
        kind: String, name: String
    ) throws {
        try shop.pack("1.0.0", [app(kind), Self.food])
        try shop.install("1.0.0")
        let renamed = Shipped(name: "other", kind: kind, sql: Self.note)
        try shop.pack("2.0.0", name == "app" ? [Self.food] : [renamed, Self.food])
        let expected = "\(shop.path("app.db")) stays, but release 2.0.0 does not use it"
        let plan = try shop.plan("2.0.0")
        #expect(plan.output.contains(expected) || plan.errors.contains(expected), "\(plan)")
        #expect(try shop.apply("2.0.0").errors.contains(expected))
        #expect(try shop.apply("2.0.0").errors == "")
    }

    @Test(arguments: ["user", "shared"])
    func `an omitted database continues as a user database`(old: String) throws {
        try begin(old)
        try shop.pack("3.0.0", [app("user"), Self.food])
        try shop.install("3.0.0")
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.kept().isEmpty)
    }

    @Test func `after a rollback the file belongs to the user, not to the newest release`() throws {
        try shop.pack("1.0.0", [app("user"), Self.food])
        try shop.install("1.0.0")
        let shared = app("shared", "INSERT INTO note VALUES('SHIPPED', 0);")
        try shop.pack("2.0.0", [shared, Self.food])
        try shop.install("2.0.0", "--take-over", "app")
        try #require(try shop.moult("rollback").status == 0)
        try shop.sql("app.db", "INSERT INTO note VALUES('DIARY', 0)")
        try shop.pack("3.0.0", [Self.food])
        try shop.install("3.0.0")
        try shop.pack("4.0.0", [shared, Self.food])
        try expectRefused("4.0.0")
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `a rollback warns that a database was taken over, even if its schema fits`(kind: String) throws {
        try begin("user")
        try shop.pack("3.0.0", [app(kind), Self.food])
        try shop.install("3.0.0", "--take-over", "app")
        let ended = try shop.moult("rollback", "--to", "1.0.0")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.errors.contains("quarantine: moult quarantine"), "\(ended.errors)")
        let set = try #require(try shop.kept("app").first { $0.reason == "taken-over" })
        let name = try #require(set.directory.split(separator: "/").last.map(String.init))
        try #require(try shop.moult("quarantine", "--restore", name).status == 0)
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
    }

    @Test func `a rollback warns that a shared database was taken over`() throws {
        try begin("shared")
        try shop.pack("3.0.0", [app("reference"), Self.food])
        try shop.install("3.0.0", "--take-over", "app")
        let ended = try shop.moult("rollback", "--to", "1.0.0")
        #expect(ended.errors.contains("so the shared database of release 1.0.0 lacks its earlier data"), "\(ended)")
        let advice = try #require(ended.errors.split(separator: "quarantine: moult ").last?.dropLast())
        let listed = try Shell.run(["sh", "-c", "\(BuiltMoult.path()) \(advice)"])
        #expect(listed.status == 0 && listed.output.contains("taken-over"), "\(listed)")
    }

    // MARK: another path

    @Test(arguments: ["user", "shared"])
    func `an omitted database with data cannot come back at another path`(kind: String) throws {
        try begin(kind)
        try shop.pack("3.0.0", [app(kind, at: "new.db"), Self.food])
        try expectRefused("3.0.0", "keeps the path app.db")
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
    }

    @Test func `an omitted database is not moved if the installed release uses its path for another database`() throws {
        try begin("user")
        try shop.pack("3.0.0", [.user(Self.note, name: "other", more: [.init("path", "app.db")]), Self.food])
        try shop.install("3.0.0")
        try shop.pack("4.0.0", [app("user", at: "new.db"), Self.food])
        try shop.install("4.0.0")
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("new.db", "SELECT t FROM note") == "")
    }

    @Test func `a release that has an omitted shared database again does not leave its rows behind without consent`()
        throws
    {
        try begin("shared")
        try shop.pack("3.0.0", [.shared(Self.note + "CREATE TABLE z(x);"), Self.food])
        let before = try shop.tree()
        #expect(try shop.plan("3.0.0").status == 3)
        let ended = try shop.apply("3.0.0")
        #expect(ended.status == 3 && ended.errors.contains("does not preserve 1 row of app.note"), "\(ended)")
        #expect(try shop.tree() == before)
        try shop.install("3.0.0", "--accept-unpreserved")
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT t FROM note") == "DIARY\n")
    }

    /// The counts are exact, because the rows that the kept release shipped are known.
    @Test func `only the app's rows in an omitted shared database count`() throws {
        let note = Self.note + "INSERT INTO note VALUES('SHIPPED', 0);"
        let first = Shipped.shared(note, [Self.own])
        try shop.pack("1.0.0", [first, Self.food])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('DIARY', 1), ('LEFT', 0)")
        try shop.pack("2.0.0", [Self.food])
        try shop.install("2.0.0")
        try shop.pack(
            "3.0.0",
            [.shared(note + "CREATE TABLE z(x);", [Self.own]), Self.food])
        #expect(try shop.plan("3.0.0").output.contains("1 row of note not carried over"))
        let ended = try shop.apply("3.0.0")
        #expect(ended.output.contains("app: 1 row of note carried over, 1 row of note not carried over"), "\(ended)")
        #expect(try shop.read("app.db", "SELECT t FROM note ORDER BY t") == "DIARY\nSHIPPED\n")
    }
}
