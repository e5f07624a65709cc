import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import MoultRows
import MoultSQLite
import StepKit
import TestSupport
import Testing

/// Scenario 5: a database that does not load is set aside with its sidecars, and recreated.
@Suite struct ResetTests {
    let scratch: Scratch
    let store: Store
    var root: String { scratch.path("store") }
    var user: String { scratch.path("store/user.db") }

    static let schema = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL); PRAGMA user_version = 3;"
    static let cache = "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB); CREATE INDEX by_image ON thumb(image);"

    init() throws {
        scratch = try Scratch()
        store = Store(at: scratch.path("store"))
        let maker = try ReleaseMaker(in: scratch.path("releases"))
        try store.updateBlocking(
            to: maker.make(
                "1.0.0", sequence: 1,
                [
                    .reference("food", "CREATE TABLE food(name); INSERT INTO food VALUES('egg');"),
                    .user("user", Self.schema), .cache("thumbs", Self.cache),
                ]))
        try Shell.must([
            "sqlite3", user,
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
            INSERT INTO note SELECT i, 'note ' || i FROM n;
            """,
        ])
    }

    private func orchestrator() throws -> Orchestrator { try Orchestrator(root: root, steps: .builtIn) }

    /// Returns the files of a set, with their sizes.
    private func set(_ directory: String, _ name: String) throws -> [String] {
        try Files.list(directory).filter { $0.hasPrefix(name) }.map {
            "\($0) \(try Files.facts("\(directory)/\($0)").map { $0.kind == .file ? "\($0.size)" : "\($0.kind)" } ?? "")"
        }
    }

    @Test(arguments: Broken.allCases)
    func `a reset works even if the database cannot be opened`(_ broken: Broken) throws {
        try broken.make("user.db", in: root)
        let before = try set(root, "user.db")
        let recovered = try store.reset("user", settingUserDataAside: true)
        // The database opens, without sidecars that would change it.
        let connection = try store.open("user")
        #expect(connection.recovered == nil)
        #expect(
            try connection.texts("SELECT count(*), (SELECT user_version FROM pragma_user_version) FROM note") == [
                ["0", "3"]
            ])
        try connection.execute("INSERT INTO note(text) VALUES('new')")
        try connection.close()
        #expect(try set(root, "user.db").count == 1)
        // All old files are in quarantine.
        if before.isEmpty {
            #expect(recovered.setAside == nil)
        } else {
            let aside = try #require(recovered.setAside)
            #expect(try set(aside, "user.db") == before)
            let label = try #require(try QuarantineRecord(in: aside))
            #expect(label.kind == .user && label.database == "user" && label.path == user)
        }
        // The salvaged rows are next to the old files.
        if broken.isReadable {
            let salvaged = try #require(recovered.salvaged)
            #expect(try Shell.must(["sqlite3", salvaged, "SELECT count(*), max(text) FROM note"]) == "300|note 99\n")
        }
        #expect(try !orchestrator().isUnfinished())
        #expect(try orchestrator().clean().recovered.isEmpty)
    }

    @Test func `a reset sets user data aside only with its option`() throws {
        let before = try Tree(root)
        let error = #expect(throws: MoultError.self) { try store.reset("user") }
        #expect(error?.outcome == .refused)
        #expect(error?.now?.description == #"If you want that: Store.reset("user", settingUserDataAside: true)"#)
        #expect(try Tree(root) == before)
        try store.reset("thumbs")
    }

    @Test(arguments: [("food", "food cannot be reset"), ("usr", "release 1.0.0 has no database \"usr\"")])
    func `only writable databases can be reset`(name: String, what: String) throws {
        let error = #expect(throws: MoultError.self) { try store.reset(name, settingUserDataAside: true) }
        #expect(error?.outcome == .refused)
        #expect(error?.what == what)
    }

    @Test func `a locked database is not reset`() throws {
        let app = try Background([
            "python3", "-c",
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("begin immediate")
            open(sys.argv[2], "w").close()
            while True: time.sleep(1)
            """, user, scratch.path("ready"),
        ])
        try app.wait { try Files.facts(scratch.path("ready")) != nil }
        try Settings.rewrite(StoreLayout(root: root), "waitForApps", 1)
        let before = try Tree(root, skipping: [".moult/history.jsonl", ".moult/transactions"])
        let error = #expect(throws: MoultError.self) { try store.reset("user", settingUserDataAside: true) }
        #expect(error?.outcome == .busy)
        #expect(error?.why?.contains("pid \(app.pid) (") == true)
        #expect(try Tree(root, skipping: [".moult/history.jsonl", ".moult/transactions"]) == before)
        app.signal(SIGKILL)
    }

    /// The middle of the file is damaged, and salvage reads the rows before and after the damage.
    @Test func `a reset salvages rows around damage`() throws {
        try Shell.must([
            "python3", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.execute("create table more(id integer primary key, text)")
            c.executemany("insert into more(text) values(?)", [("x" * 1000,)] * 1000)
            c.commit()
            c.close()
            f = open(sys.argv[1], "r+b")
            f.seek(0, 2)
            pages = f.tell() // 4096
            f.seek(pages // 2 * 4096)
            f.write(b"\\xff" * 4096)
            """, user,
        ])
        let recovered = try store.reset("user", settingUserDataAside: true)
        let salvaged = try #require(recovered.salvaged)
        #expect(try Shell.must(["sqlite3", salvaged, "SELECT count(*) FROM note"]) == "300\n")
        let rows = Int(try Shell.must(["sqlite3", salvaged, "SELECT count(*) FROM more"]).prefix { $0.isNumber }) ?? 0
        // A page holds three of these rows.
        #expect(rows >= 990 && rows < 1000)
        #expect(try Shell.must(["sqlite3", salvaged, "PRAGMA integrity_check"]) == "ok\n")
    }

    /// A set in quarantine has files of moult, too.
    @Test(arguments: ["salvaged.db", "salvaged.json", "set.json"])
    func `a reset keeps a damaged file that has the name of a file in the set`(_ name: String) throws {
        let source = ReleaseMaker.Source.user("own", "CREATE TABLE note(t)", more: [.init("path", .string(name))])
        let manifest = try ReleaseMaker(in: scratch.path("named")).make("1.0.0", sequence: 1, [source])
        let store = scratch.path("named-store")
        try BuiltMoult.must(["apply", "-q", "--create", manifest, "--store", store])
        try Shell.must(["sqlite3", "\(store)/\(name)", "INSERT INTO note VALUES('ROW')"])
        try Shell.must(["sh", "-ec", "printf 'xx' | dd of=\(store)/\(name) bs=1 seek=28 conv=notrunc status=none"])
        let damaged = try Files.read("\(store)/\(name)", limit: 1 << 20)
        try BuiltMoult.must(["reset", "own", "--set-user-data-aside", "--store", store])
        let sets = try Files.list("\(store)/.moult/quarantine")
        let set = "\(store)/.moult/quarantine/\(try #require(sets.first))"
        #expect(try Files.list(set).contains { try Files.read("\(set)/\($0)", limit: 1 << 20) == damaged })
        #expect(try BuiltMoult.run(["quarantine", "--store", store]).status == 0)
        try BuiltMoult.must(["reset", "own", "--salvage-again", "--store", store])
        #expect(try Files.list(set).contains { try Files.read("\(set)/\($0)", limit: 1 << 20) == damaged })
    }

    @Test func `a reset does not change the release to which a rollback returns`() throws {
        let maker = try ReleaseMaker(in: scratch.path("more"))
        try store.updateBlocking(
            to: maker.make(
                "2.0.0", sequence: 2,
                [
                    .reference("food", "CREATE TABLE food(name);"), .user("user", Self.schema),
                    .cache("thumbs", Self.cache),
                ]))
        try store.reset("thumbs")
        try store.rollbackBlocking(reason: "test")
        let connection = try store.connect()
        #expect(try connection.texts("SELECT name FROM food.food") == [["egg"]])
        try connection.close()
    }

    // MARK: with the library

    @Test(arguments: Broken.allCases)
    func `opening with recovery recreates a broken database`(_ broken: Broken) throws {
        for (name, policy) in [("user", Recovery.setUserDataAside), ("thumbs", .cachesOnly)] {
            try broken.make("\(name).db", in: root)
            let error = #expect(throws: MoultError.self) { try store.open(name) }
            let fault = [.missing, .onlyAWAL].contains(broken) ? "is missing" : "will not load"
            #expect(error?.what == "the database \(root)/\(name).db \(fault)")
            let connection = try store.open(name, recovering: policy)
            let recovered = try #require(connection.recovered)
            #expect((recovered.setAside == nil) == (broken == .missing))
            #expect(try connection.texts("SELECT count(*) FROM \(name == "user" ? "note" : "thumb")") == [["0"]])
            try connection.close()
            let again = try store.open(name, recovering: policy)
            #expect(again.recovered == nil)
            try again.close()
        }
    }

    @Test func `recovery with cachesOnly does not touch user data`() throws {
        try Broken.noDatabase.make("user.db", in: root)
        let before = try Tree(root)
        let error = #expect(throws: MoultError.self) { try store.open("user", recovering: .cachesOnly) }
        #expect(error?.why == "the file has only 30 bytes")
        #expect(
            error?.now?.description
                == #"Restore a backup. To set it aside and start with a new database instead: Store.reset("user", settingUserDataAside: true)"#
        )
        #expect(try Tree(root) == before)
    }

    /// Repeated damage must not fill the quarantine.
    @Test func `a database that fails again soon after a reset is reported, and not set aside again`() throws {
        try Broken.zeroBytes.make("user.db", in: root)
        try store.open("user", recovering: .setUserDataAside).close()
        try Broken.zeroBytes.make("user.db", in: root)
        let before = try Tree(root)
        let error = #expect(throws: MoultError.self) { try store.open("user", recovering: .setUserDataAside) }
        #expect(error?.what == "the database \(user) does not load, although it was just recreated")
        #expect(try Tree(root) == before)
    }

    /// A lock is temporary, so it does not cause a reset.
    @Test func `opening with recovery does not reset a locked database`() throws {
        let app = try Background([
            "python3", "-c",
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("begin exclusive")
            open(sys.argv[2], "w").close()
            while True: time.sleep(1)
            """, user, scratch.path("ready"),
        ])
        try app.wait { try Files.facts(scratch.path("ready")) != nil }
        try Settings.rewrite(StoreLayout(root: root), "waitForApps", 1)
        let error = #expect(throws: MoultError.self) { try store.open("user", recovering: .setUserDataAside) }
        #expect(error?.outcome == .busy)
        app.signal(SIGKILL)
    }

    @Test func `opening with recovery does not change a sound database`() throws {
        let before = try Tree(root)
        let connection = try store.open("user", recovering: .setUserDataAside)
        #expect(connection.recovered == nil)
        #expect(try connection.texts("SELECT count(*) FROM note") == [["300"]])
        try connection.close()
        let food = try store.open("food", recovering: .setUserDataAside)
        #expect(try food.rows("SELECT name FROM food") == [["egg"]])
        #expect(throws: MoultError.self) { try food.execute("DELETE FROM food") }
        try food.close()
        #expect(try Tree(root) == before)
    }

    /// The journal of a killed app is rolled back as usual.
    @Test func `opening with recovery does not reset a database after an interrupted write`() throws {
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("pragma cache_size=1")
            c.execute("begin immediate")
            c.execute("update note set text = hex(zeroblob(2000))")
            os._exit(0)
            """, user,
        ])
        #expect(try Files.facts("\(user)-journal") != nil)
        let connection = try store.open("user", recovering: .setUserDataAside)
        #expect(connection.recovered == nil)
        #expect(try connection.texts("SELECT count(*), min(text) FROM note") == [["300", "note 1"]])
        try connection.close()
    }
}
