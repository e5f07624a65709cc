import MoultBasics
import MoultSQLite
import TestSupport
import Testing

/// Reading a database that apps open only for a single query each.
@Suite struct BusyReaderTests {
    /// The last process that closes a database in WAL mode locks it exclusively for a moment, and removes the sidecars.
    @Test func `a database can be read while its WAL appears and disappears`() throws {
        let scratch = try TestSupport.Scratch()
        let path = scratch.path("note.db")
        try Shell.must(["sqlite3", path, "PRAGMA journal_mode=WAL; CREATE TABLE note(x); INSERT INTO note VALUES(1)"])
        let apps = try (1...2).map { _ in try Program.singleChanges(path, "UPDATE note SET x = x + 1") }
        for _ in 1...300 { #expect(try NonInvasiveReader.into(path) { try $0.int("SELECT count(*) FROM note") } == 1) }
        for app in apps {
            app.closeInput()
            #expect(app.wait() == 0)
        }
    }

    /// SQLite does not wait for a writer that is updating the `-shm` if the reader may not write to it.
    @Test(arguments: [false, true], [Shm.header, .readMarks])
    func `reading waits while a writer updates the -shm, also between two statements`(later: Bool, part: Shm) throws {
        let scratch = try TestSupport.Scratch()
        let path = scratch.path("note.db")
        let app = try Program.python(
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.executescript("PRAGMA journal_mode=WAL; CREATE TABLE note(x); INSERT INTO note VALUES(1)")
            shm = open(sys.argv[1] + "-shm", "r+b", buffering=0)
            def put(data): shm.seek(int(sys.argv[2])); shm.write(data)
            print("ready"); sys.stdin.readline()
            shm.seek(int(sys.argv[2])); valid = shm.read(int(sys.argv[3]))
            put(b"\\xff" * len(valid)); print("updating"); time.sleep(0.3); put(valid)
            sys.stdin.readline()
            """, path, "\(part.range.lowerBound)", "\(part.range.count)")
        #expect(app.line() == "ready")
        var isUpdating = false
        func update() {
            guard !isUpdating else { return }
            isUpdating = true
            app.write("update\n")
            #expect(app.line() == "updating")
        }
        if !later { update() }
        let count = try NonInvasiveReader.into(path) { connection in
            update()
            return try connection.int("SELECT count(*) FROM note")
        }
        #expect(count == 1)
        app.closeInput()
        #expect(app.wait() == 0)
    }

    /// A part of the `-shm`, by SQLite's file format.
    enum Shm {
        /// Both copies of the header: a writer that updates them causes SQLITE_READONLY_RECOVERY.
        case header
        /// The read marks without the first, which is not used for frames: a writer that resets them causes
        /// SQLITE_READONLY_CANTINIT.
        case readMarks

        var range: Range<Int> {
            switch self {
            case .header: 0..<96
            case .readMarks: 104..<120
            }
        }
    }

    /// An app's rollback journal exists only while a transaction writes.
    @Test func `a journal that appears and disappears does not make a database unreadable`() throws {
        let scratch = try TestSupport.Scratch()
        let path = scratch.path("note.db")
        try Shell.must(["sqlite3", path, "CREATE TABLE note(x)"])
        let app = try Program.python(
            """
            import os, select, sys
            print("ready")
            while not select.select([sys.stdin], [], [], 0)[0]:
                for _ in range(100):
                    open(sys.argv[1], "w").close()
                    os.unlink(sys.argv[1])
            """, "\(path)-journal")
        #expect(app.line() == "ready")
        for _ in 1...20_000 { try Sidecars.requireReadable(path) }
        app.closeInput()
        #expect(app.wait() == 0)
    }

    /// A connection without its own file also waits for locks of attached databases.
    @Test func `reading waits for the lock of an attached database`() throws {
        let scratch = try TestSupport.Scratch()
        let path = scratch.path("note.db")
        try Shell.must(["sqlite3", path, "CREATE TABLE note(x); INSERT INTO note VALUES(1)"])
        let app = try Program.python(
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("BEGIN EXCLUSIVE"); print("ready"); time.sleep(0.3); c.execute("COMMIT")
            """, path)
        #expect(app.line() == "ready")
        let connection = try Connection.inMemory()
        try connection.attach(path, as: "note", access: .readWrite)
        #expect(try connection.int("SELECT count(*) FROM note.note") == 1)
        #expect(app.wait() == 0)
        try connection.close()
    }
}
