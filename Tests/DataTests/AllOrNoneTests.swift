import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// An update that is refused, fails or is killed leaves either all writable databases changed or none, and keeps their
/// journal modes.
@Suite(.tags(.slow)) struct AllOrNoneTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    static let own: JSON = ["table": "item", "where": "mine = 1"]

    /// Packs two releases of shared databases, installs the first, and writes `MINE` to each database.
    func begin(
        _ names: [String], mode: String = "delete", more: [Shipped] = [], more2: [Shipped] = []
    )
        throws
    {
        for (version, word, other) in [("1.0.0", "ONE", more), ("2.0.0", "TWO", more2)] {
            try shop.pack(
                version,
                other
                    + names.map {
                        .shared(Self.item + "INSERT INTO item VALUES('\(word)', 0);", [Self.own], name: $0)
                    })
        }
        try shop.install("1.0.0")
        for name in names {
            try shop.sql("\(name).db", "PRAGMA journal_mode = \(mode); INSERT INTO item VALUES('MINE', 1)")
        }
    }

    func expect(_ word: String, _ names: [String], mode: String, _ note: Comment? = nil) throws {
        for name in names {
            #expect(
                try shop.read("\(name).db", "PRAGMA journal_mode; SELECT name FROM item ORDER BY name")
                    == "\(mode)\nMINE\n\(word)\n", note)
        }
    }

    // MARK: a refused step changes nothing

    @Test(arguments: ["delete", "wal"])
    func `a refused first install changes no byte of any file`(mode: String) throws {
        for name in ["a", "b", "c"] {
            try shop.sql(
                "\(name).db", "PRAGMA journal_mode = \(mode); CREATE TABLE own(x); INSERT INTO own VALUES('MINE')")
        }
        try shop.pack("1.0.0", ["a", "b", "c"].map { Shipped(name: $0, kind: "reference", sql: "CREATE TABLE t(x);") })
        let app = try App(opens: shop.path("b.db"), "SELECT * FROM own")
        func files() throws -> Tree {
            try Tree(shop.store, times: false, skipping: [".moult", "b.db-shm", "b.db-wal"])
        }
        let before = try files()
        let ended = try shop.apply("1.0.0")
        #expect(ended.status == 75, "\(ended.output)\(ended.errors)")
        #expect(try files() == before)
        app.quit()
        for name in ["a", "b", "c"] {
            #expect(try shop.read("\(name).db", "PRAGMA journal_mode; SELECT x FROM own") == "\(mode)\nMINE\n")
        }
    }

    /// An app that keeps its connection open gets the new content with its next statement.
    @Test(arguments: ["delete", "wal"]) func `an open connection does not prevent a replacement`(mode: String) throws {
        try begin(["a", "b", "c"], mode: mode)
        let app = try App(opens: shop.path("b.db"), "SELECT * FROM item")
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        app.quit()
        try expect("TWO", ["a", "b", "c"], mode: mode)
    }

    /// A program outside the mount uses the file under its own name, with another `-wal`.
    @Test(.enabled(if: geteuid() == 0, "only root may mount"))
    func `a database that is mounted as a single file is refused`()
        throws
    {
        try begin(["a"])
        let file = shop.path("a.db")
        let ended = try Shell.run([
            "unshare", "--mount", "sh", "-c", "mount --bind \"$1\" \"$1\" && exec \"$2\" apply \"$3\" --store \"$4\"",
            "sh", file,
            Shop.command(), shop.manifest("2.0.0"), shop.store,
        ])
        #expect(ended.status == 3 && ended.errors.contains("\(file) is mounted as a single file"), "\(ended)")
        try expect("ONE", ["a"], mode: "delete")
        try shop.install("2.0.0")
    }

    /// Kills the command at one system call after another, each time in a new store; returns the number of kills. Without
    /// `MOULT_LONG_TESTS`, it kills at every call that changes names, and at every fourth other call.
    func sweep(
        _ words: (AllOrNoneTests) throws -> [String], inspect: (AllOrNoneTests, Comment) throws -> Void
    ) throws -> Int {
        let command = try Shop.command()
        var struck = 0
        for (call, step) in [("renameat2", 1), ("unlink", 1), ("unlinkat", 1), ("fsync", 4), ("pwrite64", 4)] {
            for number in stride(from: 1, through: 80, by: getenv("MOULT_LONG_TESTS") == nil ? step : 1) {
                let world = try AllOrNoneTests()
                let ended = try Shell.run(
                    [
                        "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                        "inject=\(call):signal=SIGKILL:when=\(number)", command,
                    ] + words(world) + ["--store", world.shop.store])
                if ended.status == 0 { break }
                struck += 1
                try inspect(world, "killed at \(call) number \(number)")
            }
        }
        return struck
    }

    @Test(.tags(.thorough), arguments: ["reference", "shared"])
    func `a killed first install over existing files is finished or leaves the files as they were`(
        kind: String
    ) throws {
        let struck = try sweep { world in
            for name in ["a", "b"] {
                try world.shop.sql(
                    "\(name).db", "PRAGMA journal_mode = wal; CREATE TABLE own(x); INSERT INTO own VALUES('MINE')")
            }
            let manifest = try world.shop.pack(
                "1.0.0", ["a", "b"].map { Shipped(name: $0, kind: kind, sql: "CREATE TABLE t(x);") })
            return ["apply", manifest]
        } inspect: { world, note in
            #expect(try world.shop.moult("recover").status == 0, note)
            let isInstalled = try world.shop.version() != nil
            for name in ["a", "b"] {
                if isInstalled {
                    #expect(try world.shop.foreign("\(name).db", "SELECT x FROM own") == "MINE\n", note)
                    #expect(try world.shop.read("\(name).db", "SELECT count(*) FROM t") == "0\n", note)
                } else {
                    #expect(try Files.facts(world.shop.path("\(name).db-journal")) == nil, note)
                    #expect(
                        try world.shop.read("\(name).db", "PRAGMA journal_mode; SELECT x FROM own") == "wal\nMINE\n",
                        note)
                }
            }
        }
        #expect(struck > 10)
    }

    // MARK: open caches

    private static let locked = "BEGIN IMMEDIATE"

    @Test(arguments: ["delete", "wal"]) func `an open cache is reset in place, and its old content is kept`(
        mode: String
    )
        throws
    {
        try shop.pack("1.0.0", [.cache("CREATE TABLE thumb(x);")])
        try shop.install("1.0.0")
        let app = try App(
            opens: shop.path("cache.db"), "PRAGMA journal_mode = \(mode)", "INSERT INTO thumb VALUES('THUMB')")
        let inode = try Files.facts(shop.path("cache.db"))?.inode
        try shop.must("reset", "cache")
        #expect(try Files.facts(shop.path("cache.db"))?.inode == inode)
        app.quit()
        #expect(try shop.read("cache.db", "PRAGMA journal_mode; SELECT count(*) FROM thumb") == "\(mode)\n0\n")
        #expect(try shop.onlyKept("cache").sql("cache.db", "SELECT x FROM thumb") == "THUMB\n")
    }

    @Test(arguments: ["delete", "wal"]) func `a locked cache is not reset`(mode: String) throws {
        try shop.pack("1.0.0", [.cache("CREATE TABLE thumb(x);")])
        try shop.install("1.0.0")
        try Settings.rewrite(StoreLayout(root: shop.store), "waitForApps", 1)
        let app = try App(
            opens: shop.path("cache.db"), "PRAGMA journal_mode = \(mode)", "INSERT INTO thumb VALUES('THUMB')",
            Self.locked)
        let ended = try shop.moult("reset", "cache")
        #expect(ended.status == 75, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("pid \(app.pid)"), "\(ended.errors)")
        app.quit()
        #expect(try shop.read("cache.db", "PRAGMA journal_mode; SELECT x FROM thumb") == "\(mode)\nTHUMB\n")
        #expect(try shop.kept().isEmpty)
        try shop.must("reset", "cache")
    }

    private func packCaches() throws {
        let food = { (word: String) in
            Shipped.reference("CREATE TABLE food(x); INSERT INTO food VALUES('\(word)');")
        }
        try shop.pack("1.0.0", [.cache("CREATE TABLE thumb(x);"), food("ONE")])
        try shop.install("1.0.0")
        try shop.pack("2.0.0", [.cache("CREATE TABLE thumb(x, y);"), food("TWO")])
    }

    @Test(arguments: ["delete", "wal"]) func `an open cache with another schema is recreated in place`(mode: String)
        throws
    {
        try packCaches()
        let app = try App(
            opens: shop.path("cache.db"), "PRAGMA journal_mode = \(mode)", "INSERT INTO thumb VALUES('THUMB')")
        try shop.install("2.0.0")
        app.quit()
        #expect(try shop.read("cache.db", "PRAGMA journal_mode; SELECT count(y) FROM thumb") == "\(mode)\n0\n")
        #expect(try shop.onlyKept("cache").sql("cache.db", "SELECT x FROM thumb") == "THUMB\n")
    }

    @Test(arguments: ["delete", "wal"]) func `a locked cache stays, and a later apply recreates it`(mode: String) throws
    {
        try packCaches()
        let app = try App(
            opens: shop.path("cache.db"), "PRAGMA journal_mode = \(mode)", "INSERT INTO thumb VALUES('THUMB')",
            Self.locked)
        for _ in 1...2 {
            // The second apply has only the cache to recreate.
            let ended = try shop.apply("2.0.0")
            #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
            #expect((ended.output + ended.errors).contains("pid \(app.pid)"), "\(ended.errors)")
            #expect(try shop.read("food.db", "SELECT x FROM food") == "TWO\n")
        }
        #expect(try shop.kept().isEmpty)
        let status = try shop.moult("status")
        #expect(status.output.contains("cache: To create it again: moult reset cache --store "), "\(status.output)")
        #expect(try shop.moult("status", "--nagios").status == 2)
        app.quit()
        #expect(try shop.read("cache.db", "SELECT x FROM thumb") == "THUMB\n")
        try shop.install("2.0.0")
        #expect(try shop.read("cache.db", "PRAGMA journal_mode; SELECT count(y) FROM thumb") == "\(mode)\n0\n")
        #expect(try shop.moult("status", "--nagios").status == 0)
    }

    /// Only processes of the same PID namespace are visible in /proc.
    @Test(.enabled(if: geteuid() == 0, "only root may create a PID namespace"))
    func `a cache that a container has locked does not block a release`() throws {
        try packCaches()
        try shop.sql("cache.db", "INSERT INTO thumb VALUES('THUMB')")
        let holder =
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
            + "c.execute('BEGIN IMMEDIATE'); print('locked'); sys.stdin.read()"
        let app = try Program([
            "unshare", "--pid", "--fork", "--mount-proc", "python3", "-u", "-c", holder, shop.path("cache.db"),
        ])
        #expect(app.line() == "locked")
        let begin = ContinuousClock.now
        try shop.install("2.0.0")
        #expect(ContinuousClock.now - begin < .seconds(10))
        #expect(try shop.read("food.db", "SELECT x FROM food") == "TWO\n")
        app.closeInput()
        #expect(app.wait() == 0)
        try shop.install("2.0.0")
        #expect(try shop.read("cache.db", "SELECT count(y) FROM thumb") == "0\n")
    }

    @Test func `a rollback does not touch a locked cache, and a later apply recreates it`() throws {
        try shop.pack("1.0.0", [.cache("CREATE TABLE thumb(x);")])
        try shop.install("1.0.0")
        try shop.pack("2.0.0", [.cache("CREATE TABLE thumb(x, y);")])
        try shop.install("2.0.0")
        let app = try App(opens: shop.path("cache.db"), "INSERT INTO thumb VALUES('THUMB', 1)", Self.locked)
        let ended = try shop.moult("rollback")
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        #expect((ended.output + ended.errors).contains("pid \(app.pid)"), "\(ended.errors)")
        app.quit()
        #expect(try shop.read("cache.db", "SELECT x FROM thumb") == "THUMB\n")
        try shop.install("1.0.0")
        #expect(try shop.read("cache.db", "SELECT count(*) FROM thumb") == "0\n")
        #expect(try shop.moult("verify").status == 0)
    }

    @Test(arguments: ["delete", "wal"])
    func `a healthy cache that an app has locked exclusively is not set aside`(mode: String) throws {
        for (version, word) in [("1.0.0", "ONE"), ("2.0.0", "TWO")] {
            try shop.pack(
                version,
                [
                    .cache("CREATE TABLE thumb(x);"),
                    .reference("CREATE TABLE food(x); INSERT INTO food VALUES('\(word)');"),
                ])
        }
        try shop.install("1.0.0")
        let app = try App(
            opens: shop.path("cache.db"), "PRAGMA journal_mode = \(mode)", "PRAGMA locking_mode = EXCLUSIVE",
            "INSERT INTO thumb VALUES('THUMB')")
        let ended = try shop.apply("2.0.0")
        #expect([0, 75].contains(ended.status), "\(ended.output)\(ended.errors)")
        #expect(try shop.kept().isEmpty)
        app.quit()
        #expect(try shop.read("cache.db", "SELECT x FROM thumb") == "THUMB\n")
    }

    // MARK: undo after a kill

    @Test(.tags(.thorough), arguments: ["delete", "wal"])
    func `an undo after a kill keeps rows that were written after it`(
        mode: String
    ) throws {
        let struck = try sweep { world in
            try world.begin(["app"], mode: mode)
            return ["apply", world.shop.manifest("2.0.0")]
        } inspect: { world, note in
            try world.shop.sql("app.db", "INSERT INTO item VALUES('SINCE', 1)")
            _ = try world.shop.moult("recover", "--undo")
            let settled = try world.shop.moult("recover")
            #expect(settled.status == 0, "\(note): \(settled.errors)")
            let query = "SELECT name FROM item WHERE mine = 1 ORDER BY name"
            let kept = try world.shop.kept("app").map { try $0.sql("app.db", query) }
            let places = try [world.shop.read("app.db", query)] + kept
            #expect(places[0].hasPrefix("MINE\n") && places.contains("MINE\nSINCE\n"), "\(note): \(places)")
        }
        #expect(struck > 10)
    }

    @Test(.tags(.thorough), arguments: ["delete", "wal"])
    func `a replacement that was killed is recovered, with or without undo`(
        mode: String
    )
        throws
    {
        let struck = try sweep { world in
            try world.begin(["app"], mode: mode)
            return ["apply", world.shop.manifest("2.0.0")]
        } inspect: { world, note in
            let undone = try world.shop.moult("recover", "--undo")
            #expect(undone.status != 6, "\(note): \(undone.errors)")
            #expect(try world.shop.moult("recover").status == 0, note)
            let version = try world.shop.version()
            try world.expect(version == "2.0.0" ? "TWO" : "ONE", ["app"], mode: mode, note)
        }
        #expect(struck > 10)
    }
}
