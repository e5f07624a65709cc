import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

/// Hazard 12: a database with two names, links in its path, a fork while it is open, and two copies of SQLite.
@Suite struct Hazard12OtherNames {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    private func findings() throws -> [Finding] {
        try StoreEnvironment(StoreSnapshot(StoreLayout(root: lab.store.directory))).examine()
    }

    // MARK: two names

    /// SQLite derives the name of the `-wal` from the path, so a connection through the hard link does not find the
    /// `-wal`.
    @Test func `without moult, a hard link misses the content of the WAL`() throws {
        let other = lab.scratch.path("other.db")
        try Shell.must(["sqlite3", path], input: "PRAGMA journal_mode=WAL;" + Lab.notes(5, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        try Files.hardLink(path, at: other)
        #expect(try Lab.read(other) == "5|first|first\n")
        #expect(try Lab.read(path) == "500|old|old\n")
    }

    @Test func `hard links are reported`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 5, "old"))
        #expect(try findings().contains { $0.kind == .blocked } == false)
        try Files.hardLink(path, at: lab.scratch.path("other.db"))
        #expect(try findings().contains { $0.kind == .blocked && $0.path == path })
    }

    // MARK: links in the path

    /// A program that opens a file through `current` writes into a release, and after a switch into the old release,
    /// which may be removed.
    @Test func `without moult, a program can write into a release`() throws {
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 5, "old"))
        try Shell.must(["chmod", "u+w", lab.path(".moult/current/"), path])
        let app = try RunningApp(path)
        try lab.store.updateBlocking(to: lab.sealed("2.0.0", 2, 3, "new"))
        #expect(try app.run("INSERT INTO note(text) VALUES('lost')") == "")
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    /// moult detects the change, and refuses a rollback to this generation.
    @Test func `a release that a program has written to is detected`() throws {
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 5, "old"))
        let first = try lab.store.lease().generation
        try Shell.must(["chmod", "u+w", lab.path(".moult/generations/\(first)"), path])
        try Shell.must(["sqlite3", path, "INSERT INTO note(text) VALUES('foreign')"])
        let layout = try StoreLayout(root: lab.store.directory)
        #expect(
            try Verifier(StoreSnapshot(layout)).verify(deep: false).contains {
                $0.method == "seal" && $0.finding != nil
            })
        try lab.store.updateBlocking(to: lab.sealed("2.0.0", 2, 3, "new"))
        let error = #expect(throws: MoultError.self) { try lab.store.rollbackBlocking(reason: "test") }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "\(layout.root)/.moult/generations/\(first)/note.db is not the installed file")
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    @Test func `without moult, a dangling link creates a database at its target`() throws {
        let nowhere = lab.scratch.path("nowhere.db")
        try Files.symlink(to: nowhere, at: path)
        try Shell.must(["sqlite3", path, "CREATE TABLE t(x)"])
        #expect(try Files.facts(nowhere)?.kind == .file)
    }

    @Test(arguments: ["connect", "open", "cache", "reset"])
    func `no function creates a database through a dangling link`(how: String) throws {
        let nowhere = lab.scratch.path("nowhere.db")
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 5, "old"))
        try Files.remove(path)
        try Files.symlink(to: nowhere, at: path)
        switch how {
        case "connect": #expect(throws: MoultError.self) { try lab.store.connect() }
        case "open": #expect(throws: MoultError.self) { try lab.store.open("note") }
        case "cache": #expect(try Store.cache(at: path, schema: Lab.notes(0, "")) != .ready)
        default: try lab.store.reset("note", settingUserDataAside: true)
        }
        #expect(try Files.facts(nowhere) == nil)
    }

    // MARK: one process, one SQLite

    @Test func `child processes inherit no database and no lock`() throws {
        let seen = lab.scratch.path("seen")
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 5, "old"))
        let layout = try StoreLayout(root: lab.store.directory)
        let consumers: JSON = [
            [
                "name": "curious",
                "command": [
                    "release": ["sh", "-c", .string("ls -l /proc/self/fd >> \(seen)")],
                    "reload": ["sh", "-c", .string("ls -l /proc/self/fd >> \(seen)")],
                ],
            ]
        ]
        try Settings.rewrite(layout, "consumers", consumers)
        // This process also has the database open elsewhere.
        let app = try Connection(path: path, access: .readWrite)
        _ = try app.int("SELECT count(*) FROM note")
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        let text = String(decoding: try Files.read(seen, limit: 1 << 20) ?? [], as: UTF8.self)
        try #require(text.contains("/proc/"))
        let ours = text.split(separator: "\n").filter { $0.contains(" -> \(lab.store.directory)") }
        #expect(ours.isEmpty, "\(text)")
        try app.close()
    }

    /// An app that imports the library uses only the system's SQLite, because two copies would not know each other's
    /// locks.
    @Test func `an app has only one SQLite in its process`() throws {
        let maps = String(decoding: try Files.read("/proc/self/maps", limit: 1 << 24) ?? [], as: UTF8.self)
        let libraries = Set(
            maps.split(separator: "\n").compactMap { $0.split(separator: " ").last }.filter {
                $0.contains("libsqlite3")
            })
        #expect(libraries.count == 1)
        // The calls of the library go to the system's SQLite as well, so all connections of the process use one copy.
        let connection = try Connection.inMemory()
        let handle = try #require(dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_NOLOAD))
        let symbol = try #require(dlsym(handle, "sqlite3_memory_used"))
        let used = unsafeBitCast(symbol, to: (@convention(c) () -> Int64).self)
        #expect(used() > 0)
        try connection.close()
    }

    /// The kernel's mount table says here that the store is on a network file system.
    @Test(.enabled(if: geteuid() == 0, "only root may mount")) func `a store on a network file system is reported`()
        throws
    {
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 5, "old"))
        let table = lab.scratch.path("mountinfo")
        let mounted = Files.directory(of: lab.scratch.path)
        let lines = ["1 0 254:0 / / rw - ext4 /dev/vda rw", "2 1 0:40 / \(mounted) rw - nfs4 server:/x rw", ""]
        try Files.writeNew(Array(lines.joined(separator: "\n").utf8), to: table)
        // In a `chroot`, only mount points can be made private.
        let deep =
            "mount --make-private /proc && mount --bind \(table) /proc/$$/mountinfo && exec \(try BuiltMoult.path()) status --deep --store \(lab.store.directory)"
        let ended = try Shell.run(["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", deep])
        #expect(ended.output.contains("\(mounted) is a nfs4 file system"), "\(ended)")
        let here = try Shell.run([BuiltMoult.path(), "status", "--deep", "--store", lab.store.directory])
        #expect(!here.output.contains("file system"))
    }
}
