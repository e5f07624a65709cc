import MoultBasics
import TestSupport
import Testing

/// An app prevents databases from being replaced.
extension AllOrNoneTests {
    /// The ways in which an app can prevent the replacement of a database's content, by journal mode.
    static let holds: [(mode: String, statements: [String])] = [
        ("wal", ["BEGIN IMMEDIATE"]), ("wal", ["BEGIN IMMEDIATE", "INSERT INTO item VALUES('UNFINISHED', 1)"]),
        ("wal", ["BEGIN EXCLUSIVE"]), ("delete", ["BEGIN IMMEDIATE"]), ("delete", ["BEGIN EXCLUSIVE"]),
        ("delete", ["BEGIN", "SELECT * FROM item"]),
    ]

    /// One of these ways for each journal mode, for tests in which the other ways would only take more time.
    static let twoHolds = [holds[1], holds[5]]

    private func hold(_ name: String, _ hold: (mode: String, statements: [String])) throws -> App {
        try App(opens: shop.path("\(name).db"), all: hold.statements)
    }

    private func expectTryLater(_ ended: Shell.Ended, _ app: App, _ names: [String], mode: String) throws {
        #expect(ended.status == 75, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("pid \(app.pid)"), "the message must name the process: \(ended.errors)")
        #expect(try shop.version() == "1.0.0")
        app.crash()
        try expect("ONE", names, mode: mode)
        let settled = try shop.moult("recover")
        #expect(settled.status == 0 && settled.output.contains("no update is unfinished"), "\(settled.output)")
        try shop.install("2.0.0")
        try expect("TWO", names, mode: mode)
    }

    @Test(arguments: holds)
    func `a live replacement that an app blocks exits with 75, and succeeds later`(
        _ hold: (mode: String, statements: [String])
    ) throws {
        try begin(["app"], mode: hold.mode)
        let app = try self.hold("app", hold)
        try expectTryLater(shop.apply("2.0.0"), app, ["app"], mode: hold.mode)
    }

    @Test(arguments: holds)
    func `neither of two open databases is replaced if one is blocked`(_ hold: (mode: String, statements: [String]))
        throws
    {
        try begin(["a", "b"], mode: hold.mode)
        let idle = try App(opens: shop.path("a.db"), "SELECT * FROM item")
        let app = try self.hold("b", hold)
        let ended = try shop.apply("2.0.0")
        idle.quit()
        try expectTryLater(ended, app, ["a", "b"], mode: hold.mode)
    }

    @Test(arguments: twoHolds, ["a", "b", "c"])
    func `none of three databases is replaced if one is blocked`(
        _ hold: (mode: String, statements: [String]), blocked: String
    ) throws {
        try begin(["a", "b", "c"], mode: hold.mode)
        let app = try self.hold(blocked, hold)
        try expectTryLater(shop.apply("2.0.0"), app, ["a", "b", "c"], mode: hold.mode)
    }

    /// In these tests, `waitForApps` is 1 second. A command waits at least 5 seconds for a database that is locked
    /// against readers.
    @Test(.tags(.thorough), arguments: ["IMMEDIATE", "EXCLUSIVE"])
    func `an update waits for a locked database as long as the settings say`(lock: String) throws {
        try begin(["app"], mode: "delete")
        let app = try hold("app", ("delete", ["BEGIN \(lock)"]))
        let begun = ContinuousClock.now
        #expect(try shop.apply("2.0.0").status == 75)
        #expect(ContinuousClock.now - begun < .seconds(9))
        try Shell.must(["sed", "-i", "s/\"waitForApps\": 1,/\"waitForApps\": 600,/", shop.path("moult.json")])
        let again = ContinuousClock.now
        let waiting = try Background([Shop.command(), "apply", "-q", shop.manifest("2.0.0"), "--store", shop.store])
        // This update waits longer than the first one, and longer than the check of a database.
        try waiting.wait { ContinuousClock.now - again > .seconds(7) }
        app.quit()
        _ = try waiting.end()
        #expect(try shop.version() == "2.0.0")
    }

    /// Every kind of update checks the database before it starts.
    @Test(.tags(.thorough), arguments: ["a feed", "a saved plan", "a rollback"])
    func `every kind of update waits for a database that is locked against readers`(way: String) throws {
        try begin(["app"], mode: "delete")
        let settings = shop.path("moult.json")
        try Shell.must(["sed", "-i", "s/\"waitForApps\": 1,/\"waitForApps\": 600,/", settings])
        let command: [String]
        switch way {
        case "a feed":
            let feed = shop.scratch.path("feed")
            try Shell.must([Shop.command(), "publish", "--allow-unsigned", "-q", feed, shop.manifest("2.0.0")])
            try Shell.must(["sed", "-i", "1a \"feed\": {\"url\": \"\(feed)/feed.json\"},", settings])
            command = ["apply"]
        case "a saved plan":
            command = ["apply", "--plan", shop.scratch.path("plan.json")]
            #expect(try shop.plan("2.0.0", "--out", shop.scratch.path("plan.json")).status == 2)
        default:
            try shop.install("2.0.0")
            command = ["rollback"]
        }
        let app = try hold("app", ("delete", ["BEGIN EXCLUSIVE"]))
        let begun = ContinuousClock.now
        let waiting = try Background([Shop.command()] + command + ["--store", shop.store])
        // The command waits longer than the check of a database.
        try waiting.wait { ContinuousClock.now - begun > .seconds(7) }
        app.quit()
        _ = try waiting.end()
    }

    @Test(arguments: twoHolds)
    func `a migration does not run if a shared database is blocked`(_ hold: (mode: String, statements: [String])) throws
    {
        try begin(
            ["app"], mode: hold.mode, more: [.user("CREATE TABLE note(t); PRAGMA user_version = 1;")],
            more2: [
                .user(
                    "CREATE TABLE note(t, d); PRAGMA user_version = 2;",
                    ["m/2.sql": "ALTER TABLE note ADD COLUMN d; PRAGMA user_version = 2;"])
            ])
        let app = try self.hold("app", hold)
        let ended = try shop.apply("2.0.0")
        #expect(try shop.read("diary.db", "PRAGMA user_version") == "1\n")
        try expectTryLater(ended, app, ["app"], mode: hold.mode)
        #expect(try shop.read("diary.db", "PRAGMA user_version") == "2\n")
    }

    @Test(arguments: twoHolds)
    func `a rollback changes neither of two databases if one is blocked`(_ hold: (mode: String, statements: [String]))
        throws
    {
        try begin(["a", "b"], mode: hold.mode)
        try shop.install("2.0.0")
        let idle = try App(opens: shop.path("a.db"), "SELECT * FROM item")
        let app = try self.hold("b", hold)
        let ended = try shop.moult("rollback")
        idle.quit()
        #expect(ended.status == 75, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("pid \(app.pid)"), "\(ended.errors)")
        app.crash()
        try expect("TWO", ["a", "b"], mode: hold.mode)
        #expect(try shop.moult("rollback").status == 0)
        try expect("ONE", ["a", "b"], mode: hold.mode)
    }

    @Test func `a reader in WAL mode does not block a live replacement`() throws {
        try begin(["a", "b"], mode: "wal")
        let apps = try ["a", "b"].map { try App(opens: shop.path("\($0).db"), "BEGIN", "SELECT * FROM item") }
        try shop.install("2.0.0")
        for app in apps { app.quit() }
        try expect("TWO", ["a", "b"], mode: "wal")
    }

    @Test(.tags(.thorough)) func `after a kill during the replacement of two open databases, both or neither are new`()
        throws
    {
        let struck = try sweep { world in
            try world.begin(["a", "b"], mode: "wal")
            return ["apply", world.shop.manifest("2.0.0")]
        } inspect: { world, note in
            #expect(try world.shop.moult("recover").status == 0, note)
            let version = try world.shop.version()
            try world.expect(version == "2.0.0" ? "TWO" : "ONE", ["a", "b"], mode: "wal", note)
        }
        #expect(struck > 10)
    }
}
