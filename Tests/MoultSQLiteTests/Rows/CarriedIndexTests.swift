import MoultBasics
import MoultRows
import MoultSQLite
import TestSupport
import Testing

/// SQLite itself leaves a row out of an index on an expression, if a blob is bound in a UTF-16 database.
@Suite struct CarriedIndexTests {
    private static let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE INDEX i ON t(lower(a));"

    private func database(_ encoding: DatabaseHeader.TextEncoding, _ rows: String = "") throws -> Connection {
        let connection = try Connection.inMemory(encoding: encoding)
        try connection.execute(Self.schema + rows)
        return connection
    }

    @Test func `without moult, SQLite leaves a blob out of the index`() throws {
        let new = try database(.utf16LittleEndian)
        _ = try new.query("INSERT INTO t VALUES(1, ?1)", [.blob([97])])
        #expect(try new.integrityCheck() == ["row 1 missing from index i"])
    }

    @Test(arguments: [DatabaseHeader.TextEncoding.utf8, .utf16LittleEndian, .utf16BigEndian])
    func `after rows were carried over, every index has every row`(_ encoding: DatabaseHeader.TextEncoding) throws {
        let old = try database(encoding, "DROP INDEX i; INSERT INTO t VALUES(1, x'61'), (2, 'B'), (3, x'4142');")
        let new = try database(encoding)
        let transfer = RowTransfer(rules: [RowRule(table: "t")], rejects: RejectTable(label: "2.0.0"))
        for _ in 0..<2 {
            // The second time, the rows are there already.
            let outcome = try new.transaction(.immediate) { try transfer.run(from: old, to: new) }.first
            #expect(outcome?.carried == 3)
            #expect(try new.integrityCheck() == [])
        }
        #expect(try new.int("SELECT count(*) FROM t INDEXED BY i WHERE lower(a) = 'b'") == 1)
    }
}
