import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

/// Hazard 7: a process that reads a database file directly and closes it drops all its locks on the file.
@Suite struct Hazard07LostLocks {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    /// Opens the database and starts a write, which stays unfinished.
    private func writing(_ path: String) throws -> Connection {
        let app = try Connection(path: path, access: .readWrite)
        try app.execute("BEGIN IMMEDIATE; INSERT INTO note VALUES(9000, 'mine', 1)")
        return app
    }

    /// Makes another process try to write at the same time, and returns its error.
    private func otherWriter(_ path: String) throws -> String {
        try Shell.run(["sqlite3", path, "INSERT INTO note VALUES(9001, 'theirs', 1)"]).errors
    }

    private static let locked = "Runtime error near line 1: database is locked (5)\n"

    /// Two processes write at the same time.
    @Test func `without moult, reading a file directly drops the locks of the process`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(5, "old"))
        let app = try writing(path)
        #expect(try otherWriter(path).contains("database is locked"))
        close(open(path, O_RDONLY))
        #expect(try otherWriter(path) == "")
        try app.close()
    }

    @Test func `reading a file that SQLite has locked keeps the lock, and no further descriptor`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(5, "old"))
        let app = try writing(path)
        try Descriptor(path, .read).close()
        let before = try Files.list("/proc/self/fd").count
        for _ in 0..<10 {
            #expect(try Files.read(path, limit: 1 << 20)?.starts(with: Array("SQLite format 3".utf8)) == true)
        }
        let other = try Connection(path: path, access: .readOnly)
        #expect(try other.int("SELECT count(*) FROM note") == 5)
        try other.close()
        #expect(try Files.list("/proc/self/fd").count <= before + 1)
        #expect(try otherWriter(path).contains("database is locked"))
        try app.close()
        #expect(try !OpenFiles.isOpenHere(path))
    }

    /// SQLite itself closes a descriptor without locks at once, also while another thread takes a lock.
    @Test(.tags(.slow), arguments: [20]) func `updates in an app's process drop no lock of its threads`(updates: Int)
        throws
    {
        try AppUnderLoad().install(updates)
    }

    @Test(.tags(.slow, .thorough), arguments: [200])
    func `many updates in an app's process drop no lock of its threads`(updates: Int) throws {
        try AppUnderLoad().install(updates)
    }

    /// An app that is writing to its database calls all functions that read a store or check a cache.
    @Test(arguments: ["plan", "verify", "environment", "processes", "lease", "cache", "look"])
    func `functions that read a store keep the app's locks`(how: String) throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 5, "old"))
        let app = try writing(path)
        let layout = try StoreLayout(root: lab.store.directory)
        switch how {
        case "plan": _ = try lab.store.plan(lab.user("2.0.0", 2, 3, "new"))
        case "verify": _ = try Verifier(StoreSnapshot(layout)).verify(deep: true)
        case "environment": _ = try StoreEnvironment(StoreSnapshot(layout)).examine()
        case "processes": _ = try Holders(of: StoreSnapshot(layout))
        case "lease": #expect(try WriteLease.take(path) == nil)
        case "cache": #expect(try Store.cache(at: path, schema: Lab.notes(0, "")) == .ready)
        default: #expect(try NonInvasiveReader.into(path) { try $0.int("SELECT count(*) FROM note") } == 5)
        }
        #expect(try otherWriter(path).contains("database is locked"))
        try app.execute("COMMIT")
        try app.close()
        #expect(try Lab.read(path) == "6|mine|old\n")
    }

    /// One of the updates changes the database to which the app is writing, the other does not.
    @Test func `an update keeps the app's locks`() throws {
        let other = ReleaseMaker.Source.reference("codes", "CREATE TABLE codes(x); INSERT INTO codes VALUES(1);")
        func release(_ version: String, _ sequence: Int, _ migrations: KeyValuePairs<String, String> = [:]) throws
            -> String
        {
            let extra = migrations.isEmpty ? "" : "CREATE TABLE tag(x); PRAGMA user_version = 2;"
            return try lab.maker.make(
                version, sequence: sequence,
                [.user("note", Lab.notes(5, "old") + extra, migrations: migrations), other])
        }
        try lab.store.updateBlocking(to: release("1.0.0", 1))
        let app = try writing(path)
        try lab.store.updateBlocking(to: release("2.0.0", 2))
        #expect(try otherWriter(path).contains("database is locked"))
        let next = try release("3.0.0", 3, ["migrations/0002-tag.sql": "CREATE TABLE tag(x); PRAGMA user_version = 2;"])
        try Settings.rewrite(StoreLayout(root: lab.store.directory), "waitForApps", 1)
        let error = #expect(throws: MoultError.self) { try lab.store.updateBlocking(to: next) }
        #expect(error?.outcome == .busy)
        #expect(try otherWriter(path).contains("database is locked"))
        try app.execute("COMMIT")
        try app.close()
        try lab.store.updateBlocking(to: next)
        #expect(try Lab.read(path) == "6|mine|old\n")
    }

    /// The app itself has the database open during the reset.
    @Test func `a reset keeps the app's locks`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 5, "old"))
        let app = try writing(path)
        try Settings.rewrite(StoreLayout(root: lab.store.directory), "waitForApps", 1)
        let error = #expect(throws: MoultError.self) { try lab.store.reset("note", settingUserDataAside: true) }
        #expect(error?.outcome == .busy)
        #expect(try otherWriter(path).contains("database is locked"))
        try app.close()
    }
}
