import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// If a writable database of the installed release is missing, only a reset recreates it.
@Suite struct MissingDatabaseTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private func begin() throws {
        for (version, word) in [("1.0.0", "ONE"), ("2.0.0", "TWO")] {
            try shop.pack(
                version,
                [
                    .user("CREATE TABLE note(t);"),
                    .shared("CREATE TABLE item(x); INSERT INTO item VALUES('\(word)');"),
                    .reference("CREATE TABLE food(x); INSERT INTO food VALUES('\(word)');"),
                ])
        }
        try shop.install("1.0.0")
    }

    @Test(arguments: ["diary", "app"], ["1.0.0", "2.0.0"])
    func `an update does not recreate a missing database`(name: String, version: String) throws {
        try begin()
        try Files.rename(shop.path("\(name).db"), to: shop.scratch.path("unmounted.db"))
        let before = try shop.tree()
        #expect(try shop.plan(version).status == 3)
        let ended = try shop.apply(version)
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("reset \(name) --set-user-data-aside"), "\(ended.errors)")
        #expect(try shop.tree() == before)
        // Once the file is back, the next update succeeds.
        try Files.rename(shop.scratch.path("unmounted.db"), to: shop.path("\(name).db"))
        try shop.install("2.0.0")
    }

    @Test func `the first install names a dangling link, and the advised commands work`() throws {
        let place = shop.path("diary.db")
        try Files.symlink(to: shop.scratch.path("unmounted.db"), at: place)
        try shop.pack("1.0.0", [.user("CREATE TABLE note(t);")])
        let ended = try shop.apply("1.0.0")
        #expect(ended.status == 3)
        #expect(ended.errors.contains("\(place) is a symbolic link to"), "\(ended.errors)")
        #expect(!ended.errors.contains("moult reset"), "\(ended.errors)")
        let command = try #require(ended.errors.split(separator: "or remove the link: ").last)
        try Shell.must(["sh", "-ec", command.trimmed])
        try shop.install("1.0.0")
    }

    @Test(arguments: ["diary", "app"])
    func `if a directory is in place of a database, the advised commands move it and reset the database`(name: String)
        throws
    {
        try begin()
        let place = shop.path("\(name).db")
        try Shell.must(["rm", place])
        try Shell.must(["mkdir", place])
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3)
        #expect(ended.errors.contains("or reset it: moult reset \(name) --set-user-data-aside"), "\(ended)")
        let command = try #require(ended.errors.split(separator: "To move it away: ").last)
        try Shell.must(["sh", "-ec", command.trimmed])
        #expect(try shop.moult("reset", name, "--set-user-data-aside").status == 0)
        try shop.install("2.0.0")
    }

    @Test(arguments: ["diary", "app"]) func `a rollback does not recreate a missing database`(name: String) throws {
        try begin()
        try shop.install("2.0.0")
        try Files.remove(shop.path("\(name).db"))
        let before = try shop.tree()
        #expect(try shop.moult("rollback").status == 3)
        #expect(try shop.tree() == before)
    }

    @Test(arguments: ["diary", "app"]) func `a reset recreates a missing database`(name: String) throws {
        try begin()
        try Files.remove(shop.path("\(name).db"))
        let ended = try shop.moult("reset", name, "--set-user-data-aside")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.read("\(name).db", "PRAGMA integrity_check") == "ok\n")
        try shop.install("2.0.0")
    }

    @Test(arguments: ["diary", "app"]) func `an update is refused if only the WAL of a database is left`(name: String)
        throws
    {
        try begin()
        try App.run(shop.path("\(name).db"), crash: true, "PRAGMA journal_mode = WAL", "CREATE TABLE own(x)")
        try Files.remove(shop.path("\(name).db"))
        #expect(try shop.apply("2.0.0").status == 3)
        #expect(try Files.facts(shop.path("\(name).db")) == nil)
        #expect(try Files.facts(shop.path("\(name).db-wal"))?.kind == .file)
    }

    /// The user's file would count as a cache, or be hidden by a link, when its disk is back.
    @Test(arguments: ["user", "shared"], ["cache", "reference"])
    func `a missing database is not created as another kind without consent`(old: String, new: String) throws {
        try shop.pack("1.0.0", [Shipped(name: "app", kind: old, sql: "CREATE TABLE note(t);")])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('DIARY')")
        try shop.pack("2.0.0", [Shipped(name: "app", kind: new, sql: "CREATE TABLE note(t);")])
        try Files.rename(shop.path("app.db"), to: shop.scratch.path("unmounted.db"))
        let before = try shop.tree()
        for ended in [try shop.plan("2.0.0"), try shop.apply("2.0.0")] {
            #expect(ended.status == 3 && ended.errors.contains("reset app --set-user-data-aside"), "\(ended)")
        }
        #expect(try shop.tree() == before)
        try Files.rename(shop.scratch.path("unmounted.db"), to: shop.path("app.db"))
        #expect(try shop.read("app.db", "SELECT t FROM note") == "DIARY\n")
        try shop.install("2.0.0", "--take-over", "app")
    }

    @Test(arguments: ["user", "shared", "cache", "reference"])
    func `a missing database of an earlier release is not created without consent`(kind: String) throws {
        let food = Shipped.reference("CREATE TABLE food(x);")
        try shop.pack("1.0.0", [Shipped(name: "app", kind: "user", sql: "CREATE TABLE note(t);"), food])
        try shop.install("1.0.0")
        try shop.pack("2.0.0", [food])
        try shop.install("2.0.0")
        try Files.rename(shop.path("app.db"), to: shop.scratch.path("unmounted.db"))
        try shop.pack("3.0.0", [Shipped(name: "app", kind: kind, sql: "CREATE TABLE note(t);"), food])
        let before = try shop.tree()
        let ended = try shop.apply("3.0.0")
        #expect(ended.status == 3 && ended.errors.contains("--take-over app"), "\(ended)")
        let back = try shop.moult("rollback", "--to", "1.0.0")
        #expect(back.status == 3 && back.errors.contains("--take-over app"), "\(back)")
        #expect(try shop.tree() == before)
        try shop.install("3.0.0", "--take-over", "app")
        #expect(try shop.read("app.db", "SELECT count(*) FROM note") == "0\n")
    }

    @Test func `a rollback from a user database to a cache does not create a missing file`() throws {
        try shop.pack("1.0.0", [Shipped(name: "app", kind: "cache", sql: "CREATE TABLE note(t);")])
        try shop.install("1.0.0")
        try shop.pack("2.0.0", [Shipped(name: "app", kind: "user", sql: "CREATE TABLE note(t);")])
        try shop.install("2.0.0")
        try Files.rename(shop.path("app.db"), to: shop.scratch.path("unmounted.db"))
        let before = try shop.tree()
        #expect(try shop.moult("rollback").status == 3)
        #expect(try shop.tree() == before)
    }

    @Test func `a database that a release adds is created`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE note(t);")])
        try shop.install("1.0.0")
        try shop.pack(
            "2.0.0",
            [
                .user("CREATE TABLE note(t);"), .user("CREATE TABLE more(t);", name: "more"),
                .shared("CREATE TABLE item(x);"),
            ])
        try shop.install("2.0.0")
        #expect(try shop.read("more.db", "SELECT count(*) FROM more") == "0\n")
    }
}
