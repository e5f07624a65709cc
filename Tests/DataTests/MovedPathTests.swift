import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// If a release gives a writable database a new path, the data moves with it.
@Suite struct MovedPathTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    static let own: JSON = ["table": "item", "where": "mine = 1"]

    private func at(_ path: String) -> [JSON.Member] { [.init("path", .string(path))] }

    private func begin(mode: String = "delete") throws {
        try shop.pack(
            "1.0.0",
            [
                .user("CREATE TABLE note(t); PRAGMA user_version = 1;"),
                .shared(Self.item + "INSERT INTO item VALUES('ONE', 0);", [Self.own]),
            ])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "PRAGMA journal_mode = \(mode); INSERT INTO note VALUES('DIARY')")
        try shop.sql("app.db", "PRAGMA journal_mode = \(mode); INSERT INTO item VALUES('MINE', 1)")
    }

    /// Packs a release that moves both databases.
    private func packSecond() throws {
        try shop.pack(
            "2.0.0",
            [
                .user("CREATE TABLE note(t); PRAGMA user_version = 1;", more: at("new-diary.db")),
                .shared(Self.item + "INSERT INTO item VALUES('TWO', 0);", [Self.own], more: at("new-app.db")),
            ])
    }

    private func names() throws -> [String] { try Files.list(shop.store).filter { $0.hasSuffix(".db") }.sorted() }

    @Test(arguments: ["delete", "wal"]) func `the data moves to the new path`(mode: String) throws {
        try begin(mode: mode)
        try packSecond()
        try shop.install("2.0.0")
        #expect(try names() == ["new-app.db", "new-diary.db"])
        #expect(try shop.read("new-diary.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("new-app.db", "SELECT name FROM item ORDER BY name") == "MINE\nTWO\n")
        #expect(try shop.read("new-diary.db", "PRAGMA journal_mode") == "\(mode)\n")
        #expect(try shop.moult("doctor").status == 0)
    }

    @Test func `rows that are only in the WAL are moved too`() throws {
        try begin()
        try packSecond()
        try App.run(shop.path("diary.db"), crash: true, "PRAGMA journal_mode = WAL", "INSERT INTO note VALUES('LATE')")
        try App.run(shop.path("app.db"), crash: true, "PRAGMA journal_mode = WAL", "INSERT INTO item VALUES('LATE', 1)")
        try shop.install("2.0.0")
        #expect(try names() == ["new-app.db", "new-diary.db"])
        #expect(try shop.read("new-diary.db", "SELECT t FROM note ORDER BY t") == "DIARY\nLATE\n")
        #expect(try shop.read("new-app.db", "SELECT name FROM item ORDER BY name") == "LATE\nMINE\nTWO\n")
        #expect(try Files.facts(shop.path("diary.db-wal")) == nil)
    }

    @Test func `a moved database keeps its mode and its inode`() throws {
        try begin()
        try packSecond()
        try Files.setMode(shop.path("diary.db"), 0o600)
        let inode = try Files.facts(shop.path("diary.db"))?.inode
        try shop.install("2.0.0")
        let facts = try Files.facts(shop.path("new-diary.db"))
        #expect(facts?.inode == inode, "the file was copied, not renamed")
        #expect((facts?.mode ?? 0) & 0o777 == 0o600)
    }

    @Test func `the plan shows that a database moves`() throws {
        try begin()
        try packSecond()
        let text = try shop.plan("2.0.0").output
        #expect(text.contains("diary.db") && text.contains("new-diary.db"), "\(text)")
        #expect(!text.contains("new-diary.db from the template"), "\(text)")
    }

    @Test(arguments: ["delete", "wal"], ["diary.db", "app.db"])
    func `a database that is open is not moved`(mode: String, name: String) throws {
        try begin(mode: mode)
        try packSecond()
        let app = try App(opens: shop.path(name), "SELECT count(*) FROM sqlite_schema")
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 75, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("pid \(app.pid)"), "\(ended.errors)")
        #expect(try names() == ["app.db", "diary.db"])
        app.quit()
        #expect(try shop.read("diary.db", "PRAGMA journal_mode") == "\(mode)\n")
        try shop.install("2.0.0")
        #expect(try shop.read("new-diary.db", "SELECT t FROM note") == "DIARY\n")
    }

    /// An app that does not find its database creates an empty one.
    @Test func `an undo moves the data back although an app has created a file at the old path`() throws {
        try begin()
        try packSecond()
        var tried = 0
        for number in 1...6 {
            let killed = try Shell.run([
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2",
                "-e", "inject=renameat2:signal=SIGKILL:when=\(number)", Shop.command(), "apply", shop.manifest("2.0.0"),
                "--store", shop.store,
            ])
            if killed.status == 0 { break }
            for name in ["diary", "app"] where try Files.facts(shop.path("\(name).db")) == nil {
                tried += 1
                try App.run(
                    shop.path("\(name).db"), crash: true, "CREATE TABLE own(x)", "PRAGMA journal_mode = WAL",
                    "INSERT INTO own VALUES('NEWCOMER \(number)')")
            }
            #expect(try shop.moult("recover", "--undo").status == 0)
            #expect(try names() == ["app.db", "diary.db"], "killed at \(number)")
            #expect(try shop.read("diary.db", "SELECT t FROM note") == "DIARY\n")
            #expect(try shop.read("app.db", "SELECT name FROM item ORDER BY name") == "MINE\nONE\n")
        }
        try #require(tried > 0)
        let newcomers = try Shell.run(["grep", "-rlaF", "NEWCOMER", "\(shop.store)/.moult/quarantine"]).output
        #expect(newcomers.split(separator: "\n").count == tried, "\(newcomers)")
        #expect(try shop.moult("verify", "--deep").status == 0)
    }

    @Test func `an undo is refused while the old path is in use, and the error names the obstacle`() throws {
        try begin(mode: "wal")
        try packSecond()
        // The app's database is at its new path, and the update is not yet complete.
        let killed = try Shell.run([
            "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e",
            "inject=renameat2:signal=SIGKILL:when=5", Shop.command(), "apply", shop.manifest("2.0.0"), "--store",
            shop.store,
        ])
        #expect(killed.status == -9, "\(killed)")
        try #require(try Files.facts(shop.path("diary.db")) == nil)
        let app = try App(opens: shop.path("diary.db"), "CREATE TABLE own(x)")
        let busy = try shop.moult("recover", "--undo")
        #expect(busy.status != 0 && busy.errors.contains("pid \(app.pid)"), "\(busy)")
        app.quit()
        try Shell.must(["rm", shop.path("diary.db")])
        try Shell.must(["mkdir", shop.path("diary.db")])
        let occupied = try shop.moult("recover", "--undo")
        #expect(occupied.status != 0 && occupied.errors.contains("mv \(shop.path("diary.db"))"), "\(occupied)")
        try Shell.must(["rmdir", shop.path("diary.db")])
        #expect(try shop.moult("recover", "--undo").status == 0)
        #expect(try names() == ["app.db", "diary.db"])
        #expect(try shop.read("diary.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("diary.db", "PRAGMA journal_mode") == "wal\n")
    }

    @Test(arguments: ["new-diary.db", "new-app.db"])
    func `a release is refused if the new path of a database is occupied`(name: String) throws {
        try begin()
        try packSecond()
        try shop.sql(name, "CREATE TABLE other(x); INSERT INTO other VALUES('OTHER')")
        let before = try shop.tree()
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains(name), "\(ended.errors)")
        #expect(try shop.plan("2.0.0").status == 3)
        #expect(try shop.tree() == before)
    }

    @Test(arguments: ["diary.db", "app.db"])
    func `a different file at the new path does not replace a missing database`(name: String) throws {
        try begin()
        try packSecond()
        try shop.sql("new-\(name)", "CREATE TABLE other(x); INSERT INTO other VALUES('OTHER')")
        try Files.remove(shop.path(name))
        let before = try shop.tree()
        for ended in [try shop.plan("2.0.0"), try shop.apply("2.0.0")] {
            #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
            let advice = "mv \(shop.path("new-\(name)")) \(shop.path(name))"
            #expect(ended.errors.contains(advice), "\(ended.errors)")
        }
        #expect(try shop.tree() == before)
    }

    @Test(arguments: ["diary.db", "app.db"]) func `a database that was moved by hand can be moved back`(name: String)
        throws
    {
        try begin()
        try packSecond()
        try Files.rename(shop.path(name), to: shop.path("new-\(name)"))
        #expect(try shop.apply("2.0.0").status == 3)
        try Files.rename(shop.path("new-\(name)"), to: shop.path(name))
        try shop.install("2.0.0")
        #expect(try shop.read("new-diary.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("new-app.db", "SELECT name FROM item ORDER BY name") == "MINE\nTWO\n")
    }

    @Test(arguments: ["diary.db", "app.db"])
    func `an update is refused if the file at the old path is a link`(name: String) throws {
        try begin()
        try packSecond()
        try Files.rename(shop.path(name), to: shop.scratch.path(name))
        try Files.symlink(to: shop.scratch.path(name), at: shop.path(name))
        let before = try shop.tree()
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("symbolic link") && !ended.errors.contains("missing"), "\(ended.errors)")
        #expect(try shop.tree() == before)
    }

    @Test func `a rollback moves the data back`() throws {
        try begin()
        try packSecond()
        try shop.install("2.0.0")
        try shop.sql("new-diary.db", "INSERT INTO note VALUES('LATER')")
        let ended = try shop.moult("rollback")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try names() == ["app.db", "diary.db"])
        #expect(try shop.read("diary.db", "SELECT t FROM note ORDER BY t") == "DIARY\nLATER\n")
        #expect(try shop.read("app.db", "SELECT name FROM item ORDER BY name") == "MINE\nONE\n")
    }

    @Test func `a release that moves and migrates a database is refused, and changes nothing`() throws {
        try begin()
        try shop.pack(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE note(t, d); PRAGMA user_version = 2;",
                    ["m/2.sql": "ALTER TABLE note ADD COLUMN d; PRAGMA user_version = 2;"], more: at("new-diary.db"))
            ])
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.errors)")
        #expect(ended.errors.contains("moves and migrates"), "\(ended.errors)")
        #expect(try shop.read("diary.db", "PRAGMA user_version; SELECT t FROM note") == "1\nDIARY\n")
        #expect(try Files.facts(shop.path("new-diary.db")) == nil)
    }

    @Test func `no row is lost if two databases swap their paths`() throws {
        try shop.pack(
            "1.0.0",
            [
                .user("CREATE TABLE note(t);", name: "a", more: at("x.db")),
                .user("CREATE TABLE note(t);", name: "b", more: at("y.db")),
            ])
        try shop.install("1.0.0")
        try shop.sql("x.db", "INSERT INTO note VALUES('A')")
        try shop.sql("y.db", "INSERT INTO note VALUES('B')")
        try shop.pack(
            "2.0.0",
            [
                .user("CREATE TABLE note(t);", name: "a", more: at("y.db")),
                .user("CREATE TABLE note(t);", name: "b", more: at("x.db")),
            ])
        let ended = try shop.apply("2.0.0")
        let expected = ended.status == 0 ? ("B\n", "A\n") : ("A\n", "B\n")
        #expect([0, 3].contains(ended.status), "\(ended.errors)")
        #expect(try shop.read("x.db", "SELECT t FROM note") == expected.0)
        #expect(try shop.read("y.db", "SELECT t FROM note") == expected.1)
    }

    @Test func `no row is lost if another database takes the old path of a database`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE note(t);", name: "a", more: at("x.db"))])
        try shop.install("1.0.0")
        try shop.sql("x.db", "INSERT INTO note VALUES('A')")
        try shop.pack(
            "2.0.0",
            [
                .user("CREATE TABLE note(t);", name: "a", more: at("y.db")),
                .user("CREATE TABLE memo(t);", name: "b", more: at("x.db")),
            ])
        let ended = try shop.apply("2.0.0")
        #expect([0, 3].contains(ended.status), "\(ended.errors)")
        #expect(try shop.read(ended.status == 0 ? "y.db" : "x.db", "SELECT t FROM note") == "A\n")
    }

    /// SQLite would use the sidecar of another file with the moved file.
    @Test(arguments: ["-wal", "-journal", "-shm"], ["new-diary.db", "new-app.db"])
    func `a database does not move next to a sidecar of another file`(suffix: String, name: String) throws {
        try begin()
        try packSecond()
        let stray = shop.path(name + suffix)
        try App.run(shop.scratch.path("other.db"), crash: true, "PRAGMA journal_mode = WAL", "CREATE TABLE other(x)")
        try Shell.must(["cp", shop.scratch.path("other.db-wal"), stray])
        for command in [["plan"], ["apply"]] {
            let ended = try shop.moult(command + [shop.manifest("2.0.0")])
            #expect(ended.status == 3 && ended.errors.contains(stray), "\(ended)")
            #expect(try names() == ["app.db", "diary.db"])
            #expect(try Files.facts(stray) != nil)
        }
        let ended = try shop.apply("2.0.0")
        let advice = try #require(ended.errors.split(separator: "Move it away: ").last)
        try Shell.must(["sh", "-ec", String(advice)])
        try shop.install("2.0.0")
        #expect(try shop.read("new-diary.db", "SELECT t FROM note; PRAGMA integrity_check") == "DIARY\nok\n")
        #expect(try shop.read("new-app.db", "SELECT name FROM item ORDER BY name") == "MINE\nTWO\n")
        #expect(try Files.facts(stray + ".old") != nil)
        // A rollback moves the files back.
        let back = shop.path(name.replacing("new-", with: "") + suffix)
        try Shell.must(["mv", stray + ".old", back])
        let refused = try shop.moult("rollback")
        #expect(refused.status == 3 && refused.errors.contains(back), "\(refused)")
        try Files.remove(back)
        try shop.must("rollback")
        #expect(try shop.read("diary.db", "SELECT t FROM note") == "DIARY\n")
    }

    @Test(.tags(.thorough)) func `a kill at any rename leaves the data at one of the paths`() throws {
        let command = try Shop.command()
        var struck: [String: Int] = [:]
        for call in ["renameat2", "fsync"] {
            for number in 1...20 {
                let world = try MovedPathTests()
                try world.begin(mode: number.isMultiple(of: 2) ? "wal" : "delete")
                try world.packSecond()
                let ended = try Shell.run([
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                    "inject=\(call):signal=SIGKILL:when=\(number)", command, "apply", world.shop.manifest("2.0.0"),
                    "--store",
                    world.shop.store,
                ])
                if ended.status == 0 { break }
                struck[call, default: 0] += 1
                let note: Comment = "killed at \(call) number \(number)"
                let settled = try world.shop.moult("recover")
                #expect(settled.status == 0, note)
                let names = try world.names()
                #expect(names == ["app.db", "diary.db"] || names == ["new-app.db", "new-diary.db"], note)
                let diary = names.contains("diary.db") ? "diary.db" : "new-diary.db"
                #expect(try world.shop.read(diary, "SELECT t FROM note") == "DIARY\n", note)
                let app = names.contains("app.db") ? "app.db" : "new-app.db"
                #expect(try world.shop.read(app, "SELECT name FROM item WHERE mine = 1") == "MINE\n", note)
            }
        }
        #expect(struck.count == 2 && struck.values.reduce(0, +) > 10, "\(struck)")
    }
}
