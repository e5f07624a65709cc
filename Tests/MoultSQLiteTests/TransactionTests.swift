import MoultBasics
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

@Suite struct TransactionTests {
    let scratch: Scratch
    let connection: Connection

    init() throws {
        scratch = try Scratch()
        connection = try Connection(
            path: scratch.database("a.db", "CREATE TABLE t (a)"), access: .readWrite, busyTimeout: 0)
    }

    private struct Stop: Error {}

    @Test func `a transaction commits on return and rolls back on an error`() throws {
        #expect(try connection.transaction(.immediate) { try connection.execute("INSERT INTO t VALUES (1)") } == ())
        #expect(throws: Stop.self) {
            try connection.transaction(.immediate) {
                try connection.execute("INSERT INTO t VALUES (2)")
                throw Stop()
            }
        }
        #expect(try connection.query("SELECT a FROM t") == [[.integer(1)]])
        #expect(try !connection.isInTransaction)
    }

    @Test(arguments: [(Connection.TransactionKind.immediate, false), (.exclusive, false), (.deferred, true)])
    func `a transaction takes the lock of its kind`(_ kind: Connection.TransactionKind, othersMayWrite: Bool) throws {
        let writer = try Writer(scratch.path("a.db"))
        try connection.transaction(kind) {
            #expect((writer.execute("INSERT INTO t VALUES (9)") == "ok") == othersMayWrite)
        }
    }

    @Test func `a lock that another connection holds is reported as busy`() throws {
        let writer = try Writer(scratch.path("a.db"))
        writer.execute("BEGIN IMMEDIATE")
        let error = #expect(throws: MoultError.self) { try connection.transaction(.immediate) {} }
        #expect(error?.code == .databaseBusy)
        #expect(error?.outcome == .busy)
        writer.execute("COMMIT")
        try connection.transaction(.immediate) {}
    }

    /// A reader prevents the commit from taking its lock, and the transaction must have no effect.
    @Test func `a commit that fails is rolled back`() throws {
        let reader = try Writer(scratch.path("a.db"))
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t")
        #expect(throws: MoultError.self) {
            try connection.transaction(.immediate) { try connection.execute("INSERT INTO t VALUES (1)") }
        }
        #expect(try !connection.isInTransaction)
        reader.execute("COMMIT")
        #expect(try connection.int("SELECT count(*) FROM t") == 0)
    }
}
