import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

@Suite struct WALCheckpointTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    var path: String { scratch.path("a.db") }

    /// The sidecars that crashes and journal modes leave.
    @Test(arguments: ["WAL", "PERSIST", "TRUNCATE", "DELETE"], [true, false])
    func `a checkpoint leaves one file with all committed rows`(_ mode: String, crashes: Bool) throws {
        let writer = try Writer(path)
        writer.execute("PRAGMA journal_mode = \(mode)")
        writer.execute("CREATE TABLE t (a)")
        writer.execute("INSERT INTO t VALUES (1), (2)")
        if crashes {
            // This setting writes the change to the disk before the commit, so that a crash leaves a hot journal.
            writer.execute("PRAGMA cache_size = 1")
            writer.execute("BEGIN")
            writer.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) INSERT INTO t SELECT zeroblob(500) FROM n"
            )
            writer.crash()
            #expect(try !Sidecars.of(path).isEmpty)
        } else {
            #expect(writer.run("c.close()") == "ok")
        }
        try WALCheckpoint.checkpointAndSeal(path)
        #expect(try scratch.names() == ["a.db"])
        #expect(try !DatabaseHeader(ofOwnFile: path).isWAL)
        #expect(
            try Connection(path: path, access: .immutable).query("SELECT a FROM t") == [[.integer(1)], [.integer(2)]])
    }

    /// Deleting the WAL is a mistake: it loses the rows that no checkpoint has copied.
    @Test func `deleting the WAL by hand loses committed rows`() throws {
        let writer = try Writer(path)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (a)")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer.execute("INSERT INTO t VALUES (1)")
        writer.crash()
        try Shell.must(["rm", path + "-wal", path + "-shm"])
        #expect(try Connection(path: path, access: .readOnly).int("SELECT count(*) FROM t") == 0)
    }

    @Test(arguments: ["SELECT * FROM t", "BEGIN IMMEDIATE"])
    func `a process that has the database open prevents the checkpoint`(_ sql: String) throws {
        let writer = try Writer(path)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (a)")
        #expect(writer.execute(sql) == "ok")
        let error = #expect(throws: MoultError.self) { try WALCheckpoint.checkpointAndSeal(path) }
        #expect(error?.code == .databaseBusy)
        #expect(error?.outcome == .busy)
        #expect(error?.why?.contains("a process reads or writes it: pid \(writer.pid) (") == true)
        #expect(error?.description.contains("\n") == false)
        #expect(writer.execute("SELECT * FROM t") == "ok")
    }

    @Test func `existing sidecars are listed`() throws {
        let writer = try Writer(path)
        #expect(try Sidecars.of(path).isEmpty)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (a)")
        let sidecars = try Sidecars.of(path)
        #expect(sidecars.paths.map(Files.name) == ["a.db-wal", "a.db-shm"])
        #expect(sidecars.wal?.facts.size == (try scratch.size("a.db-wal")))
        #expect(sidecars.journal == nil)
    }
}
