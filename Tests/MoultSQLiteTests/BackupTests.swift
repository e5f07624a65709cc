import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

@Suite struct BackupTests {
    let scratch: Scratch
    let old: String
    let new: String

    init() throws {
        scratch = try Scratch()
        func rows(_ count: Int) -> String {
            """
            CREATE TABLE t (a);
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO t SELECT zeroblob(500) FROM n;
            """
        }
        old = try scratch.database("old.db", rows(3))
        new = try scratch.database("new.db", rows(1000))
    }

    private func open() throws -> (source: Connection, destination: Connection) {
        (
            try Connection(path: new, access: .readOnly),
            try Connection(path: old, access: .readWrite, busyTimeout: 0)
        )
    }

    @Test func `a backup copies pages step by step`() throws {
        let (source, destination) = try open()
        let backup = try Backup(from: source, to: destination)
        #expect(try backup.step(10) == .more)
        #expect(backup.remaining == backup.pageCount - 10)
        #expect(try backup.step(-1) == .done)
        #expect(backup.remaining == 0)
        try backup.finish()
        #expect(try destination.int("SELECT count(*) FROM t") == 1000)
    }

    /// The copy opens and closes the file, and the process keeps its locks on it.
    @Test func `a copy of the bytes keeps all locks of the process`() throws {
        let other = try Connection(path: new, access: .readOnly)
        try other.execute("BEGIN; SELECT count(*) FROM t")
        let source = try Connection(path: new, access: .readOnly)
        let copy = scratch.path("copy.db")
        let writer = try Writer(new)
        var seen: [Int] = []
        let isCopied = try source.copyLockedFile(to: copy) { done, total in
            if seen.isEmpty { #expect(writer.execute("BEGIN EXCLUSIVE") == "database is locked") }
            seen += [done, total]
        }
        #expect(isCopied)
        #expect(seen.last.map { $0 > 500_000 && seen.suffix(2) == [$0, $0] } ?? false)
        #expect(try Files.read(new, limit: 1 << 24) == Files.read(copy, limit: 1 << 24))
        try source.close()
        #expect(writer.execute("BEGIN EXCLUSIVE") == "database is locked")
        try other.execute("COMMIT")
        #expect(writer.execute("BEGIN EXCLUSIVE") == "ok")
    }

    @Test func `the bytes of a file that was replaced are not copied`() throws {
        let source = try Connection(path: new, access: .readOnly)
        _ = try source.int("SELECT count(*) FROM t")
        try Files.rename(old, to: new)
        let isCopied = try source.copyLockedFile(to: scratch.path("copy.db")) { _, _ in }
        #expect(!isCopied)
        #expect(try Files.facts(scratch.path("copy.db")) == nil)
    }

    @Test func `an unfinished backup has no effect`() throws {
        let (source, destination) = try open()
        do {
            let backup = try Backup(from: source, to: destination)
            #expect(try backup.step(100) == .more)
        }
        #expect(try destination.int("SELECT count(*) FROM t") == 3)
        #expect(try destination.quickCheck() == [])
    }

    /// Other connections have the file open all the time. They first find the old rows, and then the new ones.
    @Test func `readers of an open file see the new content only after the last step`() throws {
        let (source, destination) = try open()
        #expect(try destination.scalar("PRAGMA journal_mode = WAL") == .text("wal"))
        let reader = try Writer(old)
        reader.execute("BEGIN")
        let count = { (number: Int) in
            reader.run("assert c.execute('SELECT count(*) FROM t').fetchone()[0] == \(number)")
        }
        #expect(count(3) == "ok")
        try source.backup(to: destination)
        #expect(count(3) == "ok")
        reader.execute("COMMIT")
        #expect(count(1000) == "ok")
        #expect(try destination.checkpoint())
    }

    @Test func `a lock of another connection blocks a backup step and is not an error`() throws {
        let (source, destination) = try open()
        let writer = try Writer(old)
        writer.execute("BEGIN IMMEDIATE")
        let backup = try Backup(from: source, to: destination)
        guard case .blocked(.busy) = try backup.step(0) else {
            Issue.record("the step was not blocked")
            return
        }
        writer.execute("COMMIT")
        #expect(try backup.step(0) == .more)
        #expect(writer.execute("BEGIN IMMEDIATE") == "database is locked")
        #expect(try backup.step(-1) == .done)
        try backup.finish()
    }

    @Test func `a one-step backup into a locked file fails as busy`() throws {
        let (source, destination) = try open()
        let writer = try Writer(old)
        writer.execute("BEGIN IMMEDIATE")
        let error = #expect(throws: MoultError.self) { try source.backup(to: destination) }
        #expect(error?.outcome == .busy)
        #expect(error?.what == "cannot copy \(new) into \(old)")
        withExtendedLifetime(writer) {}
    }

    @Test func `a backup into a WAL-mode database with a different page size is refused`() throws {
        let (source, _) = try open()
        let other = try scratch.database(
            "other.db", "PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; CREATE TABLE u (a)")
        let destination = try Connection(path: other, access: .readWrite)
        let error = #expect(throws: MoultError.self) { try source.backup(to: destination) }
        #expect(error?.code == .databaseReadOnly)
        #expect(try destination.int("SELECT count(*) FROM u") == 0)
    }
}
