import MoultSQLite
import Testing

@testable import MoultRows

/// Rows of a table without a key do not conflict: implicit rowids may change, so equal rowids do not identify the same
/// row.
@Suite struct KeylessTransferTests {
    @Test(arguments: [RowRule.Conflict.keepUser, .keepNew, .fail])
    func `a row keeps its implicit rowid if the rowid is free, and otherwise gets a new one`(
        _ conflict: RowRule.Conflict
    ) throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES(5,'x'),(9,'y')",
            new: "CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES(9,'z'),(10,'w')")
        let outcome = try test.run(RowRule(table: "t", onConflict: conflict))
        #expect(outcome == [TableOutcome(table: "t", selected: 2, carried: 2)])
        #expect(try test.rows("SELECT rowid, a FROM t") == ["5,'x'", "9,'z'", "10,'w'", "11,'y'"])
    }

    @Test(arguments: ["UTF-8", "UTF-16le"], ["UTF-8", "UTF-16be"])
    func `a row that equals a row of the new content is not repeated`(_ old: String, _ new: String) throws {
        let test = try TransferCase(
            old:
                "PRAGMA encoding = '\(old)'; CREATE TABLE t(a, b); INSERT INTO t VALUES('ä',1),('y',NULL),('y',NULL),('z',1)",
            new: "PRAGMA encoding = '\(new)'; CREATE TABLE t(b, a); INSERT INTO t VALUES(1.0,'z'),(NULL,'y'),(1,'ä')")
        for _ in 1...2 {
            let outcome = try test.run(RowRule(table: "t"))
            #expect(outcome == [TableOutcome(table: "t", selected: 4, carried: 4)])
            #expect(
                try test.rows("SELECT a, b FROM t ORDER BY a, b, typeof(b)") == [
                    "'y',NULL", "'y',NULL", "'z',1", "'z',1.0", "'ä',1",
                ])
        }
    }

    @Test func `rows of a WITHOUT ROWID table are not duplicated in a table that has no key`() throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES('x',1),('y',2)",
            new: "CREATE TABLE t(a, b); INSERT INTO t VALUES('y',2)")
        for _ in 1...2 {
            #expect(try test.run(RowRule(table: "t")) == [TableOutcome(table: "t", selected: 2, carried: 2)])
            #expect(try test.rows("SELECT a, b FROM t") == ["'y',2", "'x',1"])
        }
    }

    @Test func `an INTEGER PRIMARY KEY that is renamed is still a key`() throws {
        let test = try TransferCase(
            old: "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1,'x')",
            new: "CREATE TABLE t(number INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1,'y')")
        #expect(try test.run(RowRule(table: "t")).first?.shippedLosers == 1)
        #expect(try test.rows("SELECT * FROM t") == ["1,'x'"])
    }

    @Test(arguments: [
        "CREATE TABLE t(a UNIQUE, b)", "CREATE TABLE t(a, b, PRIMARY KEY(b, a))",
        "CREATE TABLE t(a, b); CREATE UNIQUE INDEX u ON t(lower(a))",
    ])
    func `a row that equals a row of the new content is not repeated if its unique key has a NULL`(_ schema: String)
        throws
    {
        let test = try TransferCase(
            old: schema + "; INSERT INTO t VALUES(NULL,'help'),(NULL,'mine'),('k','x')",
            new: schema + "; INSERT INTO t VALUES('n','first'),(NULL,'help'),('k','x')")
        for _ in 1...2 {
            #expect(try test.run(RowRule(table: "t")) == [TableOutcome(table: "t", selected: 3, carried: 3)])
            #expect(
                try test.rows("SELECT a, b FROM t ORDER BY b") == [
                    "'n','first'", "NULL,'help'", "NULL,'mine'", "'k','x'",
                ])
        }
    }
}
