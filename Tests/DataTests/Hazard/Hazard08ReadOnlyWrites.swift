import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

/// Hazard 8: reading a database in WAL mode creates files next to it, and `immutable=1` does not see the content of its
/// `-wal`.
@Suite struct Hazard08ReadOnlyWrites {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    private static func read(_ uri: String) throws -> String {
        try Shell.must([
            "python3", "-c",
            "import sqlite3, sys; print(sqlite3.connect(sys.argv[1], uri=True).execute('select count(*) from note').fetchone()[0])",
            uri,
        ])
    }

    /// Even with `mode=ro`, SQLite creates the -wal and -shm of a database in WAL mode.
    @Test func `without moult, a reader creates two files`() throws {
        try Shell.must(["sqlite3", path], input: "PRAGMA journal_mode=WAL;" + Lab.notes(5, "old"))
        try #require(try Lab.sidecars(of: path).isEmpty)
        #expect(try Self.read("file:\(path)?mode=ro") == "5\n")
        #expect(try Lab.sidecars(of: path) == ["-wal", "-shm"])
    }

    /// With `immutable=1`, SQLite ignores the WAL.
    @Test func `without moult, an immutable reader misses committed content`() throws {
        try Shell.must(["sqlite3", path], input: "PRAGMA journal_mode=WAL;" + Lab.notes(5, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        #expect(try Self.read("file:\(path)?mode=ro&immutable=1") == "5\n")
        #expect(try Lab.read(path) == "500|old|old\n")
    }

    /// The state in which a database in WAL mode was left.
    enum Left: String, CaseIterable, Sendable { case closed, killed, killedWithoutIndex, open }

    /// The times and inodes of the files do not change either.
    @Test(arguments: Left.allCases)
    func `functions that read a store see every row and change no file`(left: Left) throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 5, "first"))
        try Shell.must(["sqlite3", path, "PRAGMA journal_mode=WAL"])
        var app: RunningApp?
        switch left {
        case .closed: break
        case .killed: try Lab.killedWithRowsInTheWAL(path)
        case .killedWithoutIndex:
            try Lab.killedWithRowsInTheWAL(path)
            try Files.remove("\(path)-shm")
        case .open:
            app = try RunningApp(path)
            try app?.run("INSERT INTO note(text) VALUES('open')")
        }
        let before = try Tree(lab.store.directory)
        let rows = try NonInvasiveReader.into(path) { try $0.int("SELECT count(*) FROM note") }
        let next = try lab.user("2.0.0", 2, 3, "new")
        _ = try lab.store.plan(next)
        let layout = try StoreLayout(root: lab.store.directory)
        #expect(try Verifier(StoreSnapshot(layout)).verify(deep: true).compactMap(\.finding).isEmpty)
        _ = try StoreEnvironment(StoreSnapshot(layout)).examine()
        #expect(try Tree(lab.store.directory) == before)
        #expect(rows == (left == .open ? 6 : left == .closed ? 5 : 500))
        try app?.close()
    }

    /// A read-only database must be readable without writing, which a file in WAL mode is not.
    @Test func `a read-only database in WAL mode is refused`() throws {
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 5, "old"))
        let next = try lab.maker.make(
            "2.0.0", sequence: 2, [.reference("note", "PRAGMA journal_mode=WAL;" + Lab.notes(3, "new"))])
        let error = #expect(throws: MoultError.self) { try lab.store.updateBlocking(to: next) }
        #expect(error?.why == "the file is in WAL mode, and SQLite would need sidecars to read it")
        #expect(try Lab.read(path) == "5|old|old\n")
    }

    /// The library reads a read-only release on a read-only file system, and leaves it unchanged.
    @Test(.enabled(if: geteuid() == 0, "only root may mount"))
    func `a store on a read-only mount is read and not changed`() throws {
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 5, "old"))
        let place = try lab.scratch.directory("mounted")
        try Shell.must(["mount", "--bind", lab.store.directory, place])
        defer { _ = try? Shell.run(["umount", place]) }
        try Shell.must(["mount", "-o", "remount,ro,bind", place])
        let before = try Tree(lab.store.directory)
        let connection = try Store(at: place).connect()
        #expect(try connection.texts("SELECT count(*) FROM note.note") == [["5"]])
        try connection.close()
        let error = #expect(throws: MoultError.self) { try Store(at: place).rollbackBlocking(reason: "try") }
        #expect(error?.now?.description == "Mount the file system of the store read-write, or use another store.")
        #expect(try Tree(lab.store.directory) == before)
    }
}
