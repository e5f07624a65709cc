import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Hazard 1: SQLite replays a `-wal` next to a new main file into that file, and `integrity_check` says "ok".
@Suite struct Hazard01StaleWAL {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    /// The new file contains 3 rows, but SQLite reads the 500 old rows.
    @Test func `without moult, a stale WAL hides the new file`() throws {
        let new = lab.scratch.path("new.db")
        try Lab.killedWithRowsInTheWAL(path)
        try Shell.must(["sqlite3", new], input: Lab.notes(3, "new"))
        try Shell.must(["cp", new, path])
        #expect(try Lab.read(path) == "500|old|old\n")
        #expect(try Lab.isSound(path))
    }

    @Test func `a link does not leave the WAL of the file that it replaces behind`() throws {
        try Lab.killedWithRowsInTheWAL(path)
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 3, "new"))
        #expect(try Lab.read(path) == "3|new|new\n")
        #expect(try Lab.sidecars(of: path).isEmpty)
    }

    @Test func `a replacement does not leave a stale WAL behind`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 2, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "3|new|new\n")
        #expect(try Lab.isSound(path))
    }

    @Test func `a cache is set aside together with its WAL`() throws {
        try lab.store.updateBlocking(to: lab.cache("1.0.0", 1, 2, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        try lab.store.updateBlocking(to: lab.cache("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    @Test func `an app's cache is replaced together with its WAL`() throws {
        try Lab.killedWithRowsInTheWAL(path)
        #expect(try Store.cache(at: path, schema: Lab.cacheSchema(3, "new", 1)) != .ready)
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    @Test func `a missing cache is not recreated next to a stale WAL`() throws {
        try lab.store.updateBlocking(to: lab.cache("1.0.0", 1, 2, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        try Files.remove(path)
        try lab.store.updateBlocking(to: lab.cache("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    /// A user database is recreated only if the operator requests it.
    @Test func `a missing user database is not recreated next to a stale WAL`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 2, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        try Files.remove(path)
        let next = try lab.user("2.0.0", 2, 3, "new")
        #expect(throws: MoultError.self) { try lab.store.updateBlocking(to: next) }
        try lab.store.reset("note", settingUserDataAside: true)
        #expect(try Lab.read(path) == "2|first|first\n")
    }

    @Test func `a reset does not leave a stale WAL behind`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 3, "new"))
        try Lab.killedWithRowsInTheWAL(path)
        try lab.store.reset("note", settingUserDataAside: true)
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    /// The library does not read a stale WAL next to a read-only file, and `verify` names it.
    @Test func `readers ignore a stray WAL next to a read-only database, and verify reports it`() throws {
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 3, "new"))
        let other = lab.scratch.path("other.db")
        try Lab.killedWithRowsInTheWAL(other)
        let sealed = try lab.store.lease().path(of: "note")
        try Shell.must(["chmod", "u+w", lab.path(".moult/current/")])
        for name in [sealed, path] { try Shell.must(["cp", "\(other)-wal", "\(name)-wal"]) }
        let connection = try lab.store.connect()
        #expect(try connection.texts("SELECT count(*), max(text) FROM note.note") == [["3", "new"]])
        try connection.close()
        let findings = try Verifier(StoreSnapshot(StoreLayout(root: lab.store.directory))).verify(deep: false)
            .compactMap(\.finding)
        #expect(findings.contains { $0.path?.hasSuffix("-wal") == true })
    }
}
