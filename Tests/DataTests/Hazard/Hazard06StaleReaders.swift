import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Hazard 6: after a rename, a process with the old file open in rollback mode keeps reading that file, and is not
/// notified.
@Suite struct Hazard06StaleReaders {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    private static let all = "SELECT count(*), min(text), max(text) FROM note"
    private static let write = "INSERT INTO note VALUES(9000, 'mine', 1)"

    /// An idle reader holds no lock, keeps reading the deleted file, and gets an error only when it writes.
    @Test func `without moult, an idle reader keeps the deleted file`() throws {
        let new = lab.scratch.path("new.db")
        try Shell.must(["sqlite3", path], input: Lab.notes(5, "old"))
        try Shell.must(["sqlite3", new], input: Lab.notes(3, "new"))
        let app = try RunningApp(path)
        let version = try app.run("PRAGMA data_version")
        try Files.rename(new, to: path)
        #expect(try app.run(Self.all) == "5|old|old\n")
        #expect(try app.run("PRAGMA data_version") == version)
        #expect(try app.run(Self.write) == "error: attempt to write a readonly database\n")
    }

    /// The open connection reads the new content with its next query, can detect the change, and can write.
    @Test func `after a live replacement, an open connection reads the new content`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 5, "old"))
        let app = try RunningApp(path)
        let version = try app.run("PRAGMA data_version")
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        #expect(try app.run("PRAGMA data_version") != version)
        #expect(try app.run(Self.all) == "3|new|new\n")
        #expect(try app.run(Self.write) == "")
        #expect(try Lab.read(path) == "4|mine|new\n")
    }

    /// The reader keeps a complete release, and can check whether it is still current.
    @Test func `a reader of a read-only database can detect a newer release`() throws {
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, 5, "old"))
        let connection = try lab.store.connect()
        #expect(try !connection.lease.isOutdated())
        try lab.store.updateBlocking(to: lab.sealed("2.0.0", 2, 3, "new"))
        #expect(try connection.texts("SELECT count(*), min(text), max(text) FROM note.note") == [["5", "old", "old"]])
        #expect(try connection.lease.isOutdated())
        let next = try lab.store.connect()
        #expect(try next.texts("SELECT count(*), min(text), max(text) FROM note.note") == [["3", "new", "new"]])
        #expect(try !next.lease.isOutdated())
    }

    /// The program is notified of each release that is newer than its generation.
    @Test func `a program that follows the store is notified of a new release`() async throws {
        try await lab.store.update(to: lab.sealed("1.0.0", 1, 5, "old"))
        let old = try lab.store.lease()
        try await lab.store.update(to: lab.sealed("2.0.0", 2, 3, "new"))
        let event = try await lab.store.events(since: old).first { _ in true }
        #expect(event?.version == "2.0.0")
        #expect(event?.previous == old.generation)
        #expect(event?.databases == ["note"])
    }
}
