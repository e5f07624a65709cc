import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Databases behind symbolic links, and files next to the links of read-only databases.
@Suite struct LinkTests {
    let shop: Shop
    private var data: String { shop.scratch.path("data") }

    static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    static let own: JSON = ["table": "item", "where": "mine = 1"]

    init() throws {
        shop = try Shop()
        try shop.scratch.directory("data")
        // Rollbacks go from 1.5.0 to 1.0.0, because user databases have the same schema in both.
        for (version, word) in [("1.0.0", "ONE"), ("1.5.0", "MORE"), ("2.0.0", "TWO")] {
            let second = version == "2.0.0"
            try shop.pack(
                version,
                [
                    .shared(Self.item + "INSERT INTO item VALUES('\(word)', 0);", [Self.own], name: "pantry"),
                    .user(
                        "CREATE TABLE note(t\(second ? ", d" : "")); PRAGMA user_version = \(second ? 2 : 1);",
                        second ? ["m/2.sql": "ALTER TABLE note ADD COLUMN d; PRAGMA user_version = 2;"] : [:]),
                    .reference("CREATE TABLE food(x); INSERT INTO food VALUES('\(word)');"),
                ])
        }
    }

    /// Installs the first release, lets the app write, and moves the databases to another directory, behind links.
    private func begin(_ link: (String) throws -> String = { $0 }) throws {
        try shop.install("1.0.0")
        try shop.sql("pantry.db", "INSERT INTO item VALUES('MINE', 1)")
        try shop.sql("diary.db", "INSERT INTO note VALUES('DIARY')")
        for name in ["pantry.db", "diary.db"] {
            try Files.rename(shop.path(name), to: "\(data)/\(name)")
            try Files.symlink(to: try link("\(data)/\(name)"), at: shop.path(name))
        }
    }

    @Test(arguments: ["absolute", "relative", "twice"])
    func `an update changes the databases behind the links`(kind: String) throws {
        try begin { path in
            switch kind {
            case "relative": return "../data/\(Files.name(of: path))"
            case "twice":
                let step = path + ".link"
                try Files.symlink(to: path, at: step)
                return step
            default: return path
            }
        }
        let inodes = try ["pantry.db", "diary.db"].map { try Files.facts("\(data)/\($0)")?.inode }
        try shop.install("2.0.0")
        for name in ["pantry.db", "diary.db"] { #expect(try Files.facts(shop.path(name))?.kind == .link) }
        #expect(try Shop.read("\(data)/pantry.db", "SELECT name FROM item ORDER BY name") == "MINE\nTWO\n")
        #expect(try Shop.read("\(data)/pantry.db", "SELECT release FROM moult_release") == "2.0.0\n")
        #expect(try Shop.read("\(data)/diary.db", "PRAGMA user_version; SELECT t FROM note") == "2\nDIARY\n")
        #expect(try ["pantry.db", "diary.db"].map { try Files.facts("\(data)/\($0)")?.inode } == inodes)
    }

    @Test func `a rollback changes the database behind the link`() throws {
        try begin()
        try shop.install("1.5.0")
        #expect(try Shop.read("\(data)/pantry.db", "SELECT name FROM item ORDER BY name") == "MINE\nMORE\n")
        #expect(try shop.moult("rollback").status == 0)
        #expect(try Files.facts(shop.path("pantry.db"))?.kind == .link)
        #expect(try Shop.read("\(data)/pantry.db", "SELECT name FROM item ORDER BY name") == "MINE\nONE\n")
    }

    @Test(arguments: ["delete", "wal"])
    func `a connection to an open database behind a link stays usable`(mode: String) throws {
        try begin()
        let app = try App(opens: shop.path("pantry.db"), "PRAGMA journal_mode = \(mode)", "SELECT * FROM item")
        try shop.install("2.0.0")
        app.quit()
        #expect(
            try Shop.read("\(data)/pantry.db", "PRAGMA journal_mode; SELECT name FROM item ORDER BY name")
                == "\(mode)\nMINE\nTWO\n")
    }

    @Test(arguments: ["pantry", "diary"])
    func `a reset of a database behind a link gives its target new content, and keeps the old one`(name: String) throws
    {
        try begin()
        let ended = try shop.moult("reset", name, "--set-user-data-aside")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try Files.facts(shop.path("\(name).db"))?.kind == .link)
        let (table, text) = name == "pantry" ? ("item", "MINE") : ("note", "DIARY")
        #expect(try !Shop.read("\(data)/\(name).db", ".dump \(table)").contains(text))
        #expect(try shop.onlyKept(name).sql("\(name).db", ".dump \(table)").contains(text))
    }

    /// moult does not move a file outside the store.
    @Test func `a reset of a database behind a link that SQLite cannot open is refused, and changes nothing`() throws {
        try begin()
        try Files.replace("\(data)/diary.db", with: Array("garbage".utf8))
        let before = try shop.tree()
        let ended = try shop.moult("reset", "diary", "--set-user-data-aside")
        #expect(ended.status == 3, "\(ended.errors)")
        #expect(ended.errors.contains("symbolic link"), "\(ended.errors)")
        #expect(try shop.tree() == before)
    }

    @Test(arguments: ["pantry", "diary"]) func `a link to a missing file is refused`(name: String) throws {
        try begin()
        try Files.rename("\(data)/\(name).db", to: "\(data)/unmounted.db")
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("\(name).db"), "\(ended.errors)")
        #expect(try Files.facts("\(data)/\(name).db") == nil)
        #expect(try Files.facts(shop.path("\(name).db"))?.kind == .link)
        // The link has a target again, as if its disk had been mounted.
        try Files.rename("\(data)/unmounted.db", to: "\(data)/\(name).db")
        try shop.install("2.0.0")
    }

    @Test(arguments: ["pantry", "diary"]) func `a link to a directory is refused`(name: String) throws {
        try begin()
        try Files.remove(shop.path("\(name).db"))
        try Files.symlink(to: data, at: shop.path("\(name).db"))
        let before = try Tree(data)
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(try Tree(data) == before)
    }

    @Test(arguments: ["shared", "reference", "cache"])
    func `the first install over a link does not lose the data behind the link`(kind: String) throws {
        try Shop.sql("\(data)/app.db", Self.item + "INSERT INTO item VALUES('MINE', 1);")
        try Files.symlink(to: "\(data)/app.db", at: shop.path("app.db"))
        try shop.pack("1.0.1", [Shipped(name: "app", kind: kind, sql: "CREATE TABLE other(x);")])
        let ended = try shop.apply("1.0.1")
        #expect([0, 3].contains(ended.status), "\(ended.errors)")
        let left = try Shop.sql("\(data)/app.db", "SELECT count(*) FROM sqlite_schema WHERE name = 'item'")
        #expect(try left == "1\n" || !shop.databases(with: "MINE").isEmpty)
    }

    @Test(arguments: ["link", "directory"])
    func `a link or a directory at the path of a new cache is refused, and the plan says so`(kind: String) throws {
        try Shop.sql("\(data)/app.db", Self.item + "INSERT INTO item VALUES('MINE', 1);")
        if kind == "link" {
            try Files.symlink(to: "\(data)/app.db", at: shop.path("cache.db"))
        } else {
            try Files.rename(data, to: shop.path("cache.db"))
        }
        try shop.pack("1.0.1", [.cache("CREATE TABLE other(x);")])
        let before = try shop.tree()
        for ended in [try shop.plan("1.0.1"), try shop.apply("1.0.1")] {
            #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
            #expect(ended.errors.contains(shop.path("cache.db")), "\(ended.errors)")
        }
        #expect(try shop.tree() == before)
    }

    @Test(arguments: [true, false]) func `only a link that moult created is removed with its database`(isOwn: Bool)
        throws
    {
        try shop.install("1.0.0")
        if !isOwn {
            try shop.sql("other.db", "CREATE TABLE mine(x)")
            try Files.remove(shop.path("food.db"))
            try Files.symlink(to: "other.db", at: shop.path("food.db"))
        }
        try shop.pack("3.0.0", [.reference("CREATE TABLE word(x);", name: "word")])
        let ended = try shop.apply("3.0.0")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try Files.facts(shop.path("food.db"))?.kind == (isOwn ? nil : .link))
        #expect(try shop.read("word.db", "SELECT count(*) FROM word") == "0\n")
    }

    @Test func `a link to a cache is kept if its schema matches`() throws {
        try Shop.sql("\(data)/cache.db", "CREATE TABLE thumb(x); INSERT INTO thumb VALUES('MINE');")
        try Files.symlink(to: "\(data)/cache.db", at: shop.path("cache.db"))
        try shop.pack("1.0.1", [.cache("CREATE TABLE thumb(x);")])
        try shop.install("1.0.1")
        #expect(try Files.facts(shop.path("cache.db"))?.kind == .link)
        #expect(try shop.read("cache.db", "SELECT x FROM thumb") == "MINE\n")
    }

    @Test func `the user's rows in a file that two stores share through links are not lost`() throws {
        try begin()
        let other = try Shop()
        try Files.symlink(to: "\(data)/pantry.db", at: other.path("pantry.db"))
        try shop.install("2.0.0")
        #expect(try other.moult("apply", shop.manifest("1.0.0")).status == 3)
        #expect(try Shop.read("\(data)/pantry.db", "SELECT name FROM item WHERE mine = 1") == "MINE\n")
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root can follow a link of another user"), arguments: ["pantry", "diary"])
    func `root refuses a link or a directory that another user controls`(name: String) throws {
        try begin()
        try Shell.must(["chown", "-R", "4711:4711", data])
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(try Shop.read("\(data)/pantry.db", "SELECT name FROM item ORDER BY name") == "MINE\nONE\n")
    }

    // MARK: Files next to the link of a read-only database

    @Test(arguments: ["-wal", "-journal", "-shm"])
    func `an update is refused before any change if a stray sidecar is next to the link of a read-only database`(
        suffix: String
    ) throws {
        try shop.install("1.0.0")
        let stray = shop.path("food.db\(suffix)")
        try Files.writeNew(Array("stray".utf8), to: stray)
        let before = try shop.tree()
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains(stray), "the message must name the file: \(ended.errors)")
        #expect(try shop.tree() == before)
        #expect(try shop.read("pantry.db", "SELECT name FROM item") == "ONE\n")
        try Files.remove(stray)
        try shop.install("2.0.0")
        #expect(try shop.read("food.db", "SELECT x FROM food") == "TWO\n")
    }

    @Test(arguments: ["-wal", "-journal", "-shm"]) func `a plan reports a stray sidecar next to a read-only database`(
        suffix: String
    ) throws {
        try shop.install("1.0.0")
        let stray = shop.path("food.db\(suffix)")
        try Files.writeNew(Array("stray".utf8), to: stray)
        let ended = try shop.plan("2.0.0")
        #expect((ended.output + ended.errors).contains(stray), "\(ended.output)\(ended.errors)")
    }
}
