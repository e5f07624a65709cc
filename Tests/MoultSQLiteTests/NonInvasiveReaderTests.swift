import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

@Suite struct NonInvasiveReaderTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    var path: String { scratch.path("d/a.db") }

    /// To SQLite, a transaction that begins while a reader opens the file looks like one that a crash has left.
    @Test func `a reader finds no hot journal while an app begins one transaction after another`() throws {
        try Files.makeDirectory(scratch.path("d"))
        let app = try Background([
            "python3", "-c",
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
            c.executescript("PRAGMA journal_mode = PERSIST; PRAGMA synchronous = OFF; CREATE TABLE t (a); INSERT INTO t VALUES (0)")
            open(sys.argv[2], "w").close()
            while True:
                c.execute("UPDATE t SET a = a + 1")
                time.sleep(0.0001)
            """, path, scratch.path("ready"),
        ])
        try app.wait { try Files.facts(scratch.path("ready")) != nil }
        for _ in 0..<3_000 {
            _ = try LockFreeReader.into(path) { connection, _ in try connection.int("SELECT count(*) FROM t") }
        }
    }

    /// States in which a database with 505 rows can be on the disk.
    enum State: CaseIterable {
        case rollbackIdle, rollbackWriting, rollbackPersist, walInUse, walWriting, walCrashed, walEmptied,
            walWithoutSharedMemory,
            walClosed

        var way: LockFreeReader.Way {
            switch self {
            case .rollbackIdle, .rollbackWriting, .rollbackPersist: .locks
            case .walInUse, .walWriting, .walCrashed, .walEmptied: .sharedMemory
            case .walWithoutSharedMemory: .privateIndex
            case .walClosed: .closed
            }
        }

        var names: [String] {
            switch self {
            case .rollbackIdle, .walClosed: ["a.db"]
            case .rollbackWriting, .rollbackPersist: ["a.db", "a.db-journal"]
            case .walInUse, .walWriting, .walCrashed, .walEmptied: ["a.db", "a.db-shm", "a.db-wal"]
            case .walWithoutSharedMemory: ["a.db", "a.db-wal"]
            }
        }
    }

    /// Creates a database with 505 rows in a state. A WAL with content has 500 of the rows.
    private func prepare(_ state: State) throws -> Writer {
        try Files.makeDirectory(scratch.path("d"))
        let writer = try Writer(path)
        if state.way != .locks {
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("PRAGMA wal_autocheckpoint = 0")
        }
        if state == .rollbackPersist { writer.execute("PRAGMA journal_mode = PERSIST") }
        writer.execute("CREATE TABLE t (a)")
        writer.execute("INSERT INTO t VALUES (1), (2), (3), (4), (5)")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer.execute(
            "WITH RECURSIVE n (i) AS (SELECT 6 UNION ALL SELECT i + 1 FROM n WHERE i < 505) INSERT INTO t SELECT i FROM n"
        )
        switch state {
        case .rollbackIdle, .rollbackPersist, .walInUse: break
        case .rollbackWriting, .walWriting:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("INSERT INTO t VALUES (506)")
        case .walCrashed: writer.crash()
        case .walEmptied:
            writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            writer.crash()
        case .walWithoutSharedMemory:
            writer.crash()
            try Files.remove(path + "-shm")
        case .walClosed: #expect(writer.run("c.close()") == "ok")
        }
        #expect(try scratch.names(in: "d") == state.names)
        return writer
    }

    @Test(arguments: State.allCases)
    func `a reader sees all rows and leaves no trace`(_ state: State) throws {
        let writer = try prepare(state)
        let before = try Tree(scratch.path("d"))
        let rows = try LockFreeReader.into(path, deadline: 10) { connection, way in
            #expect(way == state.way)
            return try connection.int("SELECT count(*) FROM t")
        }
        #expect(rows == 505)
        #expect(try Tree(scratch.path("d")) == before)
        withExtendedLifetime(writer) {}
    }

    @Test(.enabled(if: geteuid() == 0, "only root may mount"), arguments: State.allCases)
    func `a database in a read-only directory can be read`(_ state: State) throws {
        let writer = try prepare(state)
        try Files.makeDirectory(scratch.path("m"))
        try Shell.must(["mount", "--bind", scratch.path("d"), scratch.path("m")])
        defer { #expect((try? Shell.must(["umount", scratch.path("m")])) != nil) }
        try Shell.must(["mount", "-o", "remount,bind,ro", scratch.path("m")])
        #expect(throws: MoultError.self) { try Files.writeNew([], to: scratch.path("m/x")) }
        let before = try Tree(scratch.path("d"))
        let rows = try LockFreeReader.into(scratch.path("m/a.db")) { connection, _ in
            try connection.int("SELECT count(*) FROM t")
        }
        #expect(rows == 505)
        #expect(try Tree(scratch.path("d")) == before)
        withExtendedLifetime(writer) {}
    }

    @Test func `the sidecars of a link's target are found`() throws {
        let writer = try prepare(.walWithoutSharedMemory)
        try Files.symlink(to: "d/a.db", at: scratch.path("link.db"))
        #expect(
            try LockFreeReader.into(scratch.path("link.db")) {
                try $0.int("SELECT count(*) + \($1 == .privateIndex) FROM t")
            }
                == 506)
        withExtendedLifetime(writer) {}
    }

    /// Of the usual methods, one writes files, and the other does not see the rows.
    @Test func `a read-only connection leaves sidecars behind, and an immutable one does not see rows in the WAL`()
        throws
    {
        let writer = try prepare(.walClosed)
        let connection = try Connection(path: path, access: .readOnly)
        #expect(try connection.int("SELECT count(*) FROM t") == 505)
        try connection.close()
        #expect(try scratch.names(in: "d") == ["a.db", "a.db-shm", "a.db-wal"])
        withExtendedLifetime(writer) {}

        try Shell.must(["rm", "-r", scratch.path("d")])
        let other = try prepare(.walInUse)
        #expect(try Connection(path: path, access: .immutable).int("SELECT count(*) FROM t") == 5)
        withExtendedLifetime(other) {}
    }

    @Test func `a reader reports a hot journal and does not change it`() throws {
        let writer = try prepare(.rollbackIdle)
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE t SET a = zeroblob(1000)")
        writer.crash()
        let before = try Tree(scratch.path("d"))
        let error = #expect(throws: MoultError.self) { try LockFreeReader.into(path) { _, _ in } }
        #expect(error?.code == .hotJournal)
        #expect(error?.what == "\(path) has a hot journal")
        #expect(try Tree(scratch.path("d")) == before)
    }

    @Test(arguments: [0, 1])
    func `reading an empty file keeps its sidecars`(_ size: Int) throws {
        let writer = try prepare(.walWithoutSharedMemory)
        #expect(truncate(path, size) == 0)
        let before = try Tree(scratch.path("d"))
        let error = #expect(throws: MoultError.self) { try LockFreeReader.into(path) { _, _ in } }
        // SQLite treats a file of 1 byte as empty.
        #expect(error?.why == "the file has only 0 bytes")
        #expect(try Tree(scratch.path("d")) == before)
        withExtendedLifetime(writer) {}
    }

    /// No lock blocks writers, so a reader may see a mix of old and new content.
    @Test(arguments: [State.walClosed, .walWithoutSharedMemory])
    func `a reader reads again after a write that happens while it reads`(_ state: State) throws {
        let writer = try prepare(state)
        var counts: [Int64] = []
        try LockFreeReader.into(path) { connection, _ in
            counts.append(try connection.int("SELECT count(*) FROM t"))
            if counts.count == 1 { try write() }
        }
        #expect(counts.count == 2)
        #expect(counts.last == (counts.first ?? 0) + 1)
        withExtendedLifetime(writer) {}
    }

    @Test(arguments: [State.walClosed, .walWithoutSharedMemory])
    func `a reader reports writes that do not end`(_ state: State) throws {
        let writer = try prepare(state)
        let error = #expect(throws: MoultError.self) {
            try LockFreeReader.into(path, busyTimeout: 0) { connection, _ in
                _ = try connection.int("SELECT count(*) FROM t")
                try write()
            }
        }
        #expect(error?.code == .databaseBusy)
        #expect(error?.what == "\(path) was changed while it was read")
        withExtendedLifetime(writer) {}
    }

    private func write() throws {
        let other = try Writer(path)
        #expect(other.execute("INSERT INTO t VALUES (7)") == "ok")
    }

    /// The reader's lock on a closed database makes writers in rollback mode wait until reading ends.
    @Test func `a reader blocks writers in rollback mode`() throws {
        let writer = try prepare(.walClosed)
        try LockFreeReader.into(path) { connection, way in
            #expect(way == .closed)
            let other = try Writer(path)
            #expect(other.execute("PRAGMA locking_mode = EXCLUSIVE") == "ok")
            #expect(other.execute("SELECT * FROM t") == "database is locked")
        }
        withExtendedLifetime(writer) {}
    }
}
