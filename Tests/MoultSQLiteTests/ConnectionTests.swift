import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import Synchronization
import TestSupport
import Testing

@Suite struct ConnectionTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func `values of every kind are read back unchanged`() throws {
        let connection = try Connection(path: scratch.path("a.db"), access: .readWriteCreate)
        try connection.execute("CREATE TABLE t (a, b, c, d, e); -- and\n; CREATE INDEX i ON t (a);")
        let row: [Value] = [.null, .integer(.min), .real(0.1), .text("naïve 'x'"), .blob([0, 255])]
        try connection.withStatement("INSERT INTO t VALUES (?,?,?,?,?)") { statement in
            try statement.bind(row)
            try statement.run()
        }
        #expect(try connection.query("SELECT * FROM t") == [row])
        #expect(try connection.totalChanges == 1)
        #expect(try connection.lastInsertRowID == 1)
        try connection.close()
    }

    /// These characters have a meaning in a URI, or when SQLite parses a name.
    @Test(arguments: ["a?b.db", "a#b.db", "a%41.db", "a b&mode=ro.db", "ü+;=.db", ":memory:", "a\"'.db"])
    func `a connection opens exactly the named file`(_ name: String) throws {
        let connection = try Connection(path: scratch.path(name), access: .readWriteCreate)
        try connection.execute("CREATE TABLE t (a)")
        try connection.close()
        #expect(try scratch.names() == [name])
        #expect(try Connection(path: scratch.path(name), access: .readOnly).int("SELECT count(*) FROM t") == 0)
    }

    @Test func `two leading slashes in a path do not mean a host`() throws {
        let path = "/" + scratch.path("a.db")
        try Connection(path: path, access: .readWriteCreate).execute("CREATE TABLE t (a)")
        #expect(try scratch.names() == ["a.db"])
    }

    @Test(arguments: Access.allCases.filter { ![.readWriteCreate, .asOpened].contains($0) })
    func `opening a missing file is an error that names the file, and creates nothing`(_ access: Access) throws {
        let path = scratch.path("missing.db")
        let error = #expect(throws: MoultError.self) { _ = try Connection(path: path, access: access) }
        #expect(error?.code == .cannotOpenDatabase)
        #expect(
            error?.description
                == "cannot open database \(path): unable to open database file: No such file or directory "
                + "(SQLITE_CANTOPEN)")
        #expect(try scratch.names() == [])
    }

    @Test func `an error of close names the open statements`() throws {
        let connection = try Connection.inMemory()
        try connection.withStatement("SELECT 1") { _ in
            let error = #expect(throws: MoultError.self) { try connection.close() }
            #expect(error?.what == "cannot close :memory: with statements open: SELECT 1")
        }
        try connection.close()
        try connection.close()
        let error = #expect(throws: MoultError.self) { try connection.execute("SELECT 1") }
        #expect(error?.description == "cannot use the connection to :memory:: the connection is closed")
    }

    @Test func `another thread can interrupt a statement`() throws {
        let connection = try Connection.inMemory()
        let interrupter = connection.interrupter
        // The interruption may come before a statement runs, so the thread repeats it.
        let isOver = Atomic(false)
        let thread = try Threads.start { while !isOver.load(ordering: .relaxed) { interrupter.interrupt() } }
        let error = #expect(throws: MoultError.self) {
            _ = try connection.int(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
        }
        isOver.store(true, ordering: .relaxed)
        thread.wait()
        #expect(error?.sqlite?.resultCode == .interrupt)
        try connection.close()
        interrupter.interrupt()  // without effect on a closed connection
    }

    @Test func `switches and limits of a connection take effect`() throws {
        let connection = try Connection.inMemory()
        try connection.set(.doubleQuotedStringsInDML, false)
        #expect(throws: MoultError.self) { _ = try connection.query("SELECT \"text\"") }
        try connection.setLimit(.columns, to: 2)
        #expect(try connection.limit(.columns) == 2)
        #expect(throws: MoultError.self) { try connection.execute("CREATE TABLE t (a, b, c)") }
    }

    /// After a rename, a reader keeps the old file, and only an explicit check detects that.
    @Test func `a connection notices that its file was replaced`() throws {
        let path = try scratch.database("a.db", "CREATE TABLE t (a)")
        try scratch.database("b.db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        let connection = try Connection(path: path, access: .readWrite)
        #expect(try connection.int("SELECT count(*) FROM t") == 0)
        try Files.rename(scratch.path("b.db"), to: path)
        #expect(try connection.int("SELECT count(*) FROM t") == 0)
        let error = #expect(throws: MoultError.self) { try connection.execute("INSERT INTO t VALUES (2)") }
        #expect(error?.sqlite?.resultCode == .readOnlyMoved)
        #expect(error?.now?.description == "The file was replaced while it was open: close and open \(path) again.")
    }

    @Test func `an incomplete checkpoint is a result and not an error`() throws {
        let path = try scratch.database("a.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
        let reader = try Writer(path)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t")
        let connection = try Connection(path: path, access: .readWrite, busyTimeout: 0)
        try connection.execute("INSERT INTO t VALUES (1)")
        #expect(try !connection.checkpoint())
        reader.execute("COMMIT")
        #expect(try connection.checkpoint())
        #expect(try Sidecars.of(path).wal?.facts.size == 0)
    }
}
