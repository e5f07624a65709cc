import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Hazard 2: after a rename over a database that a process has open in WAL mode, the next opener replays the old rows.
@Suite(.tags(.thorough)) struct Hazard02RenameOverLiveWAL {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    static let pragmas = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"
    /// SQL that writes five hundred rows, which are then only in the WAL.
    static let fill = """
        BEGIN;
        DELETE FROM note;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        INSERT INTO note(text) SELECT 'old' FROM n;
        COMMIT;
        """

    /// The content of the new file is lost, and `integrity_check` says "ok".
    @Test func `without moult, the next opener replays the old WAL over the new file`() throws {
        let new = lab.scratch.path("new.db")
        try Shell.must(["sqlite3", path], input: Lab.notes(500, "first"))
        try Shell.must(["sqlite3", new], input: Lab.notes(3, "new"))
        let app = try RunningApp(path, Self.pragmas + Self.fill)
        try Files.rename(new, to: path)
        #expect(try Lab.read(path) == "500|old|old\n")
        try app.close()
        #expect(try Lab.read(path) == "500|old|old\n")
        #expect(try Lab.isSound(path))
    }

    /// After a live replacement, the running app and the next opener read the new release, and rows that are written
    /// during and after the replacement stay.
    @Test func `a live replacement reaches running and new processes`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 500, "first"))
        let app = try RunningApp(path, Self.pragmas + Self.fill)
        try app.run("INSERT INTO note VALUES(9000, 'mine', 1)")
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        let all = "SELECT count(*), min(text), max(text) FROM note"
        #expect(try app.run(all) == "4|mine|new\n")
        #expect(try Lab.read(path) == "4|mine|new\n")
        try app.run("INSERT INTO note VALUES(9001, 'mine', 1)")
        try app.close()
        #expect(try Lab.read(path) == "5|mine|new\n")
        #expect(try Lab.isSound(path))
    }

    /// By default, the kernel reports the open with SIGIO, which kills a process.
    @Test func `a process that opens a leased file breaks the lease without killing moult`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(3, "first"))
        let lease = try #require(try WriteLease.take(path))
        let opener = try Background(["python3", "-c", "import sys; open(sys.argv[1])", path])
        try opener.wait { try !lease.isUnbroken() }
    }

    @Test func `a reset reaches a process that has the file open`() throws {
        try lab.store.updateBlocking(to: lab.user("1.0.0", 1, 500, "first"))
        let app = try RunningApp(path, Self.pragmas + Self.fill)
        let recovered = try lab.store.reset("note", settingUserDataAside: true)
        #expect(try app.run("SELECT count(*), min(text), max(text) FROM note") == "500|first|first\n")
        try app.run("INSERT INTO note(text) VALUES('later')")
        try app.close()
        #expect(try Lab.read(path) == "501|first|later\n")
        #expect(try Lab.isSound(path))
        let aside = try #require(recovered.setAside)
        #expect(try Lab.read("\(aside)/note.db") == "500|old|old\n")
    }

    @Test func `a link does not replace a file while a process has it open`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(500, "first"))
        let app = try RunningApp(path, Self.pragmas + Self.fill)
        let next = try lab.sealed("1.0.0", 1, 3, "new")
        let error = #expect(throws: MoultError.self) { try lab.store.updateBlocking(to: next) }
        #expect(error?.outcome == .busy)
        #expect(try Lab.read(path) == "500|old|old\n")
        try app.close()
        try lab.store.updateBlocking(to: next)
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    @Test func `a cache with another schema is recreated for the app that has it open`() throws {
        try lab.store.updateBlocking(to: lab.cache("1.0.0", 1, 500, "first"))
        let app = try RunningApp(path, Self.pragmas + Self.fill)
        try lab.store.updateBlocking(to: lab.cache("2.0.0", 2, 3, "new"))
        #expect(try app.run("SELECT count(*), min(text), max(text) FROM note") == "3|new|new\n")
        try app.close()
        #expect(try Lab.read(path) == "3|new|new\n")
        #expect(try Lab.isSound(path))
    }

    /// The app's own cache is replaced although another process has it open: neither the writes nor the exit of that
    /// process may affect the new cache.
    @Test func `an app's new cache is not affected by a process that has the old one open`() throws {
        try lab.store.updateBlocking(to: lab.cache("1.0.0", 1, 500, "first"))
        let app = try RunningApp(path, Self.pragmas + Self.fill)
        #expect(try Store.cache(at: path, schema: Lab.cacheSchema(3, "new", 2)) != .ready)
        #expect(try Lab.read(path) == "3|new|new\n")
        let next = try RunningApp(path, Self.pragmas)
        try next.run("INSERT INTO note(text) VALUES('newer')")
        // The process writes to a file that no other process reads, and its exit does not remove the WAL of the new
        // cache.
        try app.run("INSERT INTO note(text) VALUES('lost')")
        try app.close()
        #expect(try Lab.read(path) == "4|new|newer\n")
        try next.close()
        #expect(try Lab.read(path) == "4|new|newer\n")
        #expect(try Lab.isSound(path))
    }
}
