import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Hazard 3: SQLite rolls back a hot journal next to a different main file into that file.
@Suite struct Hazard03ForeignJournal {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    /// Kills an app in the middle of a transaction: half of the transaction is in the file.
    private func killAppInTransaction() throws {
        try Lab.killedInATransaction(path)
        try #require(try Files.facts("\(path)-journal")?.size ?? 0 > 0)
    }

    /// SQLite writes pages of the old file to the new file.
    @Test func `without moult, a hot journal is rolled back into the new file`() throws {
        let new = lab.scratch.path("new.db")
        try Shell.must(["sqlite3", path], input: Lab.notes(500, "old"))
        try Shell.must(["sqlite3", new], input: Lab.notes(3, "new"))
        try killAppInTransaction()
        try Shell.must(["cp", new, path])
        let ended = try Shell.run(["sqlite3", path, "SELECT count(*), min(text), max(text) FROM note"])
        #expect(ended.output != "3|new|new\n")
    }

    /// The interrupted transaction is rolled back in the old file before rows are carried over.
    @Test func `a replacement rolls back a hot journal first`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 500, "old"))
        try Shell.must(["sqlite3", path, "UPDATE note SET text = 'mine', mine = 1 WHERE id > 400"])
        try killAppInTransaction()
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "103|mine|new\n")
        #expect(try Lab.isSound(path))
        #expect(try Lab.sidecars(of: path).isEmpty)
    }

    /// The journal has the first page, too. Only SQLite can tell whether such a file is a database.
    @Test func `a journal heals a file whose header is zeroed, and its rows are carried over`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 500, "old"))
        try Shell.must(["sqlite3", path, "UPDATE note SET text = 'mine', mine = 1 WHERE id > 400"])
        try killAppInTransaction()
        try Shell.must(["dd", "if=/dev/zero", "of=\(path)", "bs=100", "count=1", "conv=notrunc", "status=none"])
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "103|mine|new\n")
        #expect(try Lab.isSound(path))
    }

    @Test func `a file that a link replaces is kept with its hot journal`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(500, "old"))
        try killAppInTransaction()
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 3, "new"))
        #expect(try Lab.read(path) == "3|new|new\n")
        #expect(try Lab.read(lab.keptFile("note.db")) == "500|old|old\n")
    }

    @Test func `a cache is set aside together with its hot journal`() throws {
        try lab.store.updateBlocking(to: lab.cache("1.0.0", 1, 500, "old"))
        try killAppInTransaction()
        try lab.store.updateBlocking(to: lab.cache("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "3|new|new\n")
        #expect(try Lab.sidecars(of: path).isEmpty)
    }

    @Test func `an app's cache is replaced together with its hot journal`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(500, "old"))
        try killAppInTransaction()
        #expect(try Store.cache(at: path, schema: Lab.cacheSchema(3, "new", 1)) != .ready)
        #expect(try Lab.read(path) == "3|new|new\n")
        #expect(try Lab.sidecars(of: path).isEmpty)
    }

    @Test func `a missing cache is not recreated next to a journal`() throws {
        try lab.store.updateBlocking(to: lab.cache("1.0.0", 1, 500, "old"))
        try killAppInTransaction()
        try Files.remove(path)
        try lab.store.updateBlocking(to: lab.cache("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    /// A user database is recreated only if the operator requests it.
    @Test func `a missing user database is not recreated next to a journal`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 500, "old"))
        try killAppInTransaction()
        try Files.remove(path)
        let next = try lab.user("2.0.0", 2, 3, "new")
        #expect(throws: MoultError.self) { try lab.store.updateBlocking(to: next) }
        try lab.store.reset("note", settingUserDataAside: true)
        #expect(try Lab.read(path) == "500|old|old\n")
        #expect(try Lab.sidecars(of: path).isEmpty)
    }

    /// The uncommitted changes of the killed process are rolled back, and one file is set aside.
    @Test func `a reset rolls back a hot journal first`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 500, "old"))
        try killAppInTransaction()
        let recovered = try lab.store.reset("note", settingUserDataAside: true)
        #expect(try Lab.read(path) == "500|old|old\n")
        #expect(try Lab.sidecars(of: path).isEmpty)
        let aside = try #require(recovered.setAside)
        #expect(try Lab.sidecars(of: "\(aside)/note.db").isEmpty)
        #expect(try Lab.read("\(aside)/note.db") == "500|old|old\n")
    }
}
