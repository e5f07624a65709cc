import MoultBasics
import TestSupport
import Testing

@testable import MoultRows
@testable import MoultSQLite

/// The limits on the memory and time of SQL in a database.
@Suite struct SQLLimitTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private static let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    /// 17 MiB are more than the limit of a small database. The file is written by another program, which has no limit.
    @Test func `values of a large database can be read and carried over to a small one`() throws {
        let (path, size) = (scratch.path("old.db"), 17 << 20)
        try Shell.must([
            "sqlite3", path,
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); INSERT INTO t VALUES(1, zeroblob(\(size)), zeroblob(\(size)))",
        ])
        let old = try Connection(path: path, access: .readWrite)
        let new = try Connection(
            path: scratch.database("new.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)"), access: .readWrite)
        #expect(throws: MoultError.self) { _ = try new.int("SELECT length(zeroblob(\(size)))") }
        let outcomes = try new.transaction(.immediate) {
            try RowTransfer(rules: [RowRule(table: "t")], rejects: RejectTable(label: "2")).run(from: old, to: new)
        }
        #expect(outcomes == [TableOutcome(table: "t", selected: 1, carried: 1)])
        #expect(try new.int("SELECT length(a) + length(b) FROM t") == Int64(2 * size))
    }

    @Test func `values of an attached database can be read`() throws {
        let path = scratch.path("large.db")
        try Shell.must(["sqlite3", path, "CREATE TABLE t AS SELECT zeroblob(20000000) AS a"])
        let small = try Connection(path: scratch.database("small.db", "CREATE TABLE t(a)"), access: .readWrite)
        try small.attach(path, as: "large", access: .readOnly)
        #expect(try small.int("SELECT length(hex(a)) FROM large.t") == 40_000_000)
    }

    @Test func `an expression cannot make a value much larger than the file, and the error says what to do`() throws {
        let path = try scratch.database("a.db", "CREATE TABLE t(x); INSERT INTO t VALUES(1)")
        let connection = try Connection(path: path, access: .readWrite)
        #expect(try connection.int("SELECT length(hex(zeroblob(8000000 + x))) FROM t") == 16_000_002)
        let error = #expect(throws: MoultError.self) {
            _ = try connection.int("SELECT length(hex(zeroblob(9000000 + x))) FROM t")
        }
        #expect(error?.why?.contains("SQL on this database may make values of at most 16 MiB") == true)
        #expect(error?.now?.description.hasPrefix("Find the generated column, index, trigger, view or query") == true)
    }

    /// An app decides itself about its statements.
    @Test func `a connection for an app has no limits`() throws {
        let path = try scratch.database("a.db", "CREATE TABLE t(x)")
        let connection = try Connection(path: path, access: .readWrite, isForApp: true)
        #expect(try connection.limit(.length) == 1_000_000_000)
        #expect(connection.clock == nil)
    }

    @Test(.timeLimit(.minutes(1))) func `a single call has a limit on its time`() throws {
        let path = try scratch.database("a.db", "CREATE TABLE t(x)")
        let connection = try Connection(
            uri: Access.readWrite.uri(for: path), path: path, file: .init(path, .readWrite), busyTimeout: 0,
            limit: 0.2)
        let error = #expect(throws: MoultError.self) { _ = try connection.int(Self.endless) }
        #expect(error?.code == .deadline)
        #expect(error?.what == "a statement on \(path) was stopped after 0.2 s")
        // The limit applies to each call.
        #expect(try connection.int("SELECT count(*) FROM t") == 0)
    }

    @Test(.timeLimit(.minutes(1))) func `a request to stop ends the wait for a lock`() throws {
        let path = try scratch.database("a.db", "CREATE TABLE t(x)")
        let holder = try Connection(path: path, access: .readWrite)
        try holder.execute("BEGIN IMMEDIATE")
        let error = #expect(throws: MoultError.self) {
            try StatementStop(if: { true }).applying {
                try Connection(path: path, access: .readWrite, busyTimeout: 600_000).execute("BEGIN IMMEDIATE")
            }
        }
        #expect(error?.outcome == .busy)
    }

    /// The pauses add up to the timeout, as in the busy handler of SQLite.
    @Test(arguments: [0, 3, 40, 250]) func `a connection waits for a lock as long as its timeout`(_ timeout: Int32)
        throws
    {
        let path = try scratch.database("a.db", "CREATE TABLE t(x)")
        let holder = try Connection(path: path, access: .readWrite)
        try holder.execute("BEGIN IMMEDIATE")
        let begin = ContinuousClock.now
        let error = #expect(throws: MoultError.self) {
            try Connection(path: path, access: .readWrite, busyTimeout: timeout).execute("BEGIN IMMEDIATE")
        }
        #expect(error?.outcome == .busy)
        #expect(ContinuousClock.now - begin >= .milliseconds(Int(timeout)))
    }
}
