import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// Migrations change the user database with each release, and no update replaces it.
@Suite struct UserMigrationTests {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store
    var path: String { scratch.path("store/user.db") }

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: scratch.path("store"))
    }

    static let one = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL); PRAGMA user_version = 1;"
    static let two = """
        CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0);
        PRAGMA user_version = 2;
        """
    static let toTwo = "ALTER TABLE note ADD COLUMN done INTEGER NOT NULL DEFAULT 0;\nPRAGMA user_version = 2;\n"
    static let three = """
        CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0,
            tag INTEGER REFERENCES tag(id));
        CREATE INDEX note_tag ON note(tag);
        PRAGMA user_version = 3;
        """
    /// SQLite's documentation recommends this procedure for changing a table.
    static let toThree = """
        PRAGMA foreign_keys = OFF;
        CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE new_note(id INTEGER PRIMARY KEY, text TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0,
            tag INTEGER REFERENCES tag(id));
        INSERT INTO new_note(id, text, done) SELECT id, text, done FROM note;
        DROP TABLE note;
        ALTER TABLE new_note RENAME TO note;
        CREATE INDEX note_tag ON note(tag);
        PRAGMA user_version = 3;
        """

    private func release(
        _ version: String, _ sequence: Int, _ sql: String, _ migrations: KeyValuePairs<String, String> = [:],
        top: [JSON.Member] = []
    ) throws -> String {
        try maker.make(
            version, sequence: sequence, [.user("user", sql, migrations: migrations)], top: top)
    }

    private func sqlite(_ sql: String) throws -> String { try Shell.must(["sqlite3", path, sql]) }

    /// Returns everything that must not change when an update fails: names, content, times and inodes.
    private func tree() throws -> Tree {
        try Tree(scratch.path("store"), skipping: [".moult/history.jsonl", ".moult/transactions"])
    }

    @Test(arguments: ["delete", "wal"])
    func `pending migrations run in order`(mode: String) throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("PRAGMA journal_mode=\(mode); INSERT INTO note(text) VALUES('mine'),('yours')")
        let next = try release(
            "3.0.0", 3, Self.three,
            ["migrations/user/0002-done.sql": Self.toTwo, "migrations/user/0003.sql": Self.toThree])
        let plan = try store.plan(next)
        #expect(plan.effects.map(\.text).contains("user.db: 2 migrations, user_version 1 -> 3"))
        try store.updateBlocking(to: next)
        #expect(try sqlite("PRAGMA user_version; SELECT id, text, done, tag FROM note") == "3\n1|mine|0|\n2|yours|0|\n")
        #expect(try sqlite("PRAGMA journal_mode; PRAGMA integrity_check") == "\(mode)\nok\n")
        #expect(try store.isCurrent(next))
    }

    @Test func `only pending migrations run`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("INSERT INTO note(text) VALUES('mine')")
        try store.updateBlocking(to: release("2.0.0", 2, Self.two, ["m/0002.sql": Self.toTwo]))
        #expect(try sqlite("PRAGMA user_version") == "2\n")
        let next = try release("3.0.0", 3, Self.three, ["m/0002.sql": Self.toTwo, "m/0003.sql": Self.toThree])
        #expect(try store.plan(next).effects.map(\.text).contains("user.db: 1 migration, user_version 2 -> 3"))
        try store.updateBlocking(to: next)
        #expect(try sqlite("PRAGMA user_version; SELECT text FROM note") == "3\nmine\n")
    }

    @Test func `a new database is created from the template without migrations`() throws {
        try store.updateBlocking(
            to: release("3.0.0", 3, Self.three, ["m/0002.sql": Self.toTwo, "m/0003.sql": Self.toThree]))
        #expect(try sqlite("PRAGMA user_version") == "3\n")
    }

    static let bad: [(name: String, sql: String, why: String)] = [
        (
            "in its third statement",
            "ALTER TABLE note ADD COLUMN done INTEGER NOT NULL DEFAULT 0; UPDATE note SET text = text || '!'; "
                + "INSERT INTO note(text) VALUES(NULL); PRAGMA user_version = 2;",
            "NOT NULL constraint failed"
        ),
        (
            "no version", "ALTER TABLE note ADD COLUMN done INTEGER NOT NULL DEFAULT 0;",
            "user_version is 1 after the migration"
        ),
        (
            "another version", "ALTER TABLE note ADD COLUMN done; PRAGMA user_version = 7;",
            "user_version is 7 after the migration"
        ),
        ("commits", toTwo + "COMMIT;", "this statement needs COMMIT"),
        ("ends", "END;" + toTwo, "this statement needs COMMIT"),
        ("rolls back", "ROLLBACK;" + toTwo, "this statement needs ROLLBACK"),
        ("begins", "BEGIN;" + toTwo, "this statement needs BEGIN"),
        ("rolls back by a conflict", toTwo + "INSERT OR ROLLBACK INTO note(id, text) VALUES(1, 'x');", "UNIQUE"),
        ("vacuums", "VACUUM;" + toTwo, "cannot VACUUM"),
        ("attaches", "ATTACH 'x.db' AS x;" + toTwo, "this statement needs ATTACH"),
        ("changes the mode", "PRAGMA journal_mode = WAL;" + toTwo, "PRAGMA journal_mode = WAL"),
        ("rewrites the schema", "PRAGMA writable_schema = 1;" + toTwo, "PRAGMA writable_schema = 1"),
        ("loads code", "SELECT load_extension('x');" + toTwo, "load_extension"),
        ("loses rows", toTwo + "DELETE FROM note WHERE id = 1;", "table note would have 1 of its 2 rows"),
        (
            "drops a table",
            "CREATE TABLE other(x); DROP TABLE note; "
                + "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0); "
                + "PRAGMA user_version = 2;", "table note would have 0 of its 2 rows"
        ),
        (
            "leaves a reference that leads nowhere",
            toTwo + "CREATE TABLE a(x REFERENCES note(id)); INSERT INTO a VALUES(99);",
            "refers to a row of note that does not exist"
        ),
        (
            "leads elsewhere", "ALTER TABLE note ADD COLUMN finished; PRAGMA user_version = 2;",
            "table note: column \"done\" is missing"
        ),
        ("is not SQL", "ALTER TABEL note; PRAGMA user_version = 2;", "near \"TABEL\""),
    ]

    /// A sample has each migration once, and half of them in each mode.
    @Test(
        .tags(.sampled),
        arguments: bad.enumerated().flatMap { index, bad in
            (index.isMultiple(of: 2) ? ["delete", "wal"] : ["wal", "delete"]).map { (bad, $0) }
        }.sampled(bad.count))
    func `a failed migration changes nothing`(_ bad: (name: String, sql: String, why: String), mode: String) throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("PRAGMA journal_mode=\(mode); INSERT INTO note(text) VALUES('mine'),('yours')")
        let before = try tree()
        let next = try release("2.0.0", 2, Self.two, ["migrations/0002.sql": bad.sql])
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: next) }
        #expect(error?.outcome == .refused)
        let text = error?.description ?? ""
        #expect(text.contains(bad.why), "\(text)")
        #expect(try tree() == before)
    }

    /// Another process has the database open in WAL mode, with rows that no checkpoint has copied yet.
    @Test func `a failed migration changes nothing in an open database`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        let app = try Background([
            "python3", "-c",
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("pragma journal_mode=wal")
            c.execute("insert into note(text) values('mine'),('yours')")
            open(sys.argv[2], "w").close()
            while True: time.sleep(1)
            """, path, scratch.path("ready"),
        ])
        try app.wait { try Files.facts(scratch.path("ready")) != nil }
        let before = try tree()
        let next = try release("2.0.0", 2, Self.two, ["m/0002.sql": Self.bad[0].sql])
        #expect(throws: MoultError.self) { try store.updateBlocking(to: next) }
        #expect(try tree() == before)
        app.signal(SIGKILL)
    }

    @Test func `a migration may rename a table`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("INSERT INTO note(text) VALUES('mine')")
        let renamed = "CREATE TABLE memo(id INTEGER PRIMARY KEY, text TEXT NOT NULL); PRAGMA user_version = 2;"
        try store.updateBlocking(
            to: release(
                "2.0.0", 2, renamed, ["m/2.sql": "ALTER TABLE note RENAME TO memo; PRAGMA user_version = 2;"]))
        #expect(try sqlite("SELECT text FROM memo") == "mine\n")
    }

    @Test func `a migration may remove as many rows as its budget allows`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("INSERT INTO note(text) VALUES('mine'),('yours')")
        let delete = Self.toTwo + "DELETE FROM note WHERE id = 1;"
        try store.updateBlocking(
            to: release(
                "2.0.0", 2, Self.two, ["m/2.sql": delete],
                top: [.init("budget", ["user.note": ["shrink": "50%"]])]))
        #expect(try sqlite("SELECT text FROM note") == "yours\n")
    }

    /// Rows that already violated a foreign key belong to the user, and tables of the app stay.
    @Test func `objects that the user created do not prevent a migration`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite(
            "CREATE TABLE own(x REFERENCES note(id)); INSERT INTO own VALUES(99); CREATE INDEX own_x ON own(x)")
        try store.updateBlocking(to: release("2.0.0", 2, Self.two, ["m/2.sql": Self.toTwo]))
        #expect(try sqlite("PRAGMA user_version; SELECT x FROM own") == "2\n99\n")
    }

    @Test func `an update refuses a newer user database and does not change it`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("PRAGMA user_version = 5")
        let before = try tree()
        let next = try release("2.0.0", 2, Self.two, ["m/2.sql": Self.toTwo])
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: next) }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "\(path) is newer than release 2.0.0 supports")
        #expect(error?.why == "the user_version of the database is 5, and the release supports at most 2")
        #expect(try tree() == before)
    }

    @Test func `an update does not replace a broken user database`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        try Files.replace(path, with: Array("this is not a database, but it is the user's".utf8))
        let before = try tree()
        let error = #expect(throws: MoultError.self) {
            try store.updateBlocking(to: release("2.0.0", 2, Self.two, ["m/2.sql": Self.toTwo]))
        }
        #expect(error?.outcome == .refused)
        #expect(error?.now?.description.hasSuffix("Store.reset(\"user\", settingUserDataAside: true)") == true)
        #expect(try tree() == before)
    }

    /// The older release could not read the user database.
    @Test func `a rollback to a release older than the user database is refused`() throws {
        let one = JSON.Member("identity", ["userVersion": 1])
        try store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [.user("user", Self.one, more: [one])]))
        try store.updateBlocking(to: release("2.0.0", 2, Self.two, ["m/2.sql": Self.toTwo]))
        let error = #expect(throws: MoultError.self) { try store.rollbackBlocking(reason: "test") }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "\(path) is too new for release 1.0.0")
        #expect(try sqlite("PRAGMA user_version") == "2\n")
    }

    /// An open transaction of an app blocks the update, and nothing changes.
    @Test(arguments: ["delete", "wal"]) func `the error names a writer that blocks the migration`(mode: String) throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("PRAGMA journal_mode=\(mode)")
        let app = try Background([
            "python3", "-c",
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("begin immediate")
            c.execute("insert into note(text) values('unfinished')")
            open(sys.argv[2], "w").close()
            while True: time.sleep(1)
            """, path, scratch.path("ready"),
        ])
        try app.wait { try Files.facts(scratch.path("ready")) != nil }
        try Settings.rewrite(StoreLayout(root: store.directory), "waitForApps", 1)
        let error = #expect(throws: MoultError.self) {
            try store.updateBlocking(to: release("2.0.0", 2, Self.two, ["m/2.sql": Self.toTwo]))
        }
        #expect(error?.outcome == .busy)
        let why = error?.why ?? ""
        #expect(why.contains("pid \(app.pid) ("), "\(error.map { "\($0)" } ?? "")")
        app.signal(SIGKILL)
    }

    /// The journal of an app that was killed in a transaction is rolled back, and not reported forever.
    @Test func `a migration rolls back a hot journal first`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("INSERT INTO note(text) VALUES('mine')")
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("pragma cache_size=1")
            c.execute("begin immediate")
            c.execute("update note set text='lost'")
            c.executemany("insert into note(text) values(?)", [("x" * 2000,)] * 200)
            os._exit(0)
            """, path,
        ])
        #expect(try Files.facts("\(path)-journal") != nil)
        try store.updateBlocking(to: release("2.0.0", 2, Self.two, ["m/2.sql": Self.toTwo]))
        #expect(try sqlite("PRAGMA user_version; SELECT text FROM note") == "2\nmine\n")
    }
}
