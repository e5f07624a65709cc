import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Hazard 4: committed rows that are only in the `-wal` are lost with that file.
@Suite struct Hazard04LostWAL {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    /// The file is sound without its WAL, so SQLite reports no error.
    @Test func `without moult, rows that are only in the WAL are lost`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(2, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        try Shell.must(["rm", "\(path)-wal", "\(path)-shm"])
        #expect(try Lab.read(path) == "2|first|first\n")
        #expect(try Lab.isSound(path))
    }

    @Test func `a replacement keeps rows that are only in the WAL`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 2, "first"))
        try Lab.killedWithRowsInTheWAL(path, mine: true)
        // The rows of the killed app have the numbers 1 to 500, and rows of users take precedence over shipped rows.
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "500|old|old\n")
    }

    @Test func `a file that a link replaces is kept with rows that are only in the WAL`() throws {
        try Lab.killedWithRowsInTheWAL(path)
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 3, "new"))
        #expect(try Lab.read(lab.keptFile("note.db")) == "500|old|old\n")
    }

    @Test func `a cache that is set aside keeps rows that are only in the WAL`() throws {
        try lab.store.updateBlocking(to: lab.cache("1.0.0", 1, 2, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        try lab.store.updateBlocking(to: lab.cache("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(lab.keptFile("note.db")) == "500|old|old\n")
    }

    @Test func `an update keeps rows of a user database that are only in the WAL`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 2, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        try lab.store.updateBlocking(to: lab.user("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "500|old|old\n")
    }

    @Test func `a reset keeps rows that are only in the WAL`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 2, "first"))
        try Lab.killedWithRowsInTheWAL(path)
        let recovered = try lab.store.reset("note", settingUserDataAside: true)
        let aside = try #require(recovered.setAside)
        #expect(try Lab.read("\(aside)/note.db") == "500|old|old\n")
    }
}
