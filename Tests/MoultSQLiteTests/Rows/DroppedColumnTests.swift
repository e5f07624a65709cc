import MoultSQLite
import Testing

@testable import MoultRows

/// A value in a column that the new table lacks counts as lost unless it is NULL or the column's default.
@Suite struct DroppedColumnTests {
    private func incomplete(_ column: String, _ values: String...) throws -> Int? {
        let rows = values.enumerated().map { "(\($0.offset), \($0.element))" }.joined(separator: ",")
        let test = try TransferCase(
            old: "CREATE TABLE t(id INTEGER PRIMARY KEY, \(column)); INSERT INTO t(id, unit) VALUES\(rows)",
            new: "CREATE TABLE t(id INTEGER PRIMARY KEY)")
        return try test.run(RowRule(table: "t")).first?.incomplete
    }

    @Test(arguments: [
        #"unit TEXT DEFAULT "unit""#, "unit TEXT DEFAULT unit", "unit TEXT DEFAULT 'unit'", "unit TEXT DEFAULT [unit]",
    ])
    func `a default that is written as a bare name is a text value`(_ column: String) throws {
        #expect(try incomplete(column, "'unit'", "'mine'", "NULL") == 1)
    }

    @Test func `a default in double quotes is a text value even if it is the name of another column`() throws {
        #expect(try incomplete(#"a DEFAULT 'x', unit TEXT DEFAULT "a""#, "'a'", "'x'") == 1)
    }

    @Test(arguments: [
        ("unit DEFAULT -5", "-5", "5"), ("unit DEFAULT (2 + 3)", "5", "2"), ("unit DEFAULT (5 NOT NULL)", "1", "5"),
        ("unit DEFAULT x'00ff'", "x'00ff'", "'00ff'"), ("unit DEFAULT true", "1", "'true'"),
        ("unit TEXT DEFAULT 7", "'7'", "'8'"), ("unit DEFAULT 'it''s'", "'it''s'", "'its'"),
        ("unit TEXT DEFAULT 'A' COLLATE NOCASE", "'A'", "'a'"), ("unit REAL DEFAULT 0.1", "0.1", "0.2"),
    ])
    func `only values other than the default and NULL count as lost`(_ column: String, _ same: String, _ other: String)
        throws
    {
        #expect(try incomplete(column, same, "NULL") == 0)
        #expect(try incomplete(column, other) == 1)
    }

    @Test(arguments: ["unit DEFAULT CURRENT_DATE", "unit DEFAULT (date('now'))"])
    func `a default that depends on the time counts as a value`(_ column: String) throws {
        #expect(try incomplete(column, "date('now')", "NULL") == 1)
    }

    @Test(arguments: ["VIRTUAL", "STORED"])
    func `the value of a generated column is carried over into an ordinary column`(_ storage: String) throws {
        let test = try TransferCase(
            old:
                "CREATE TABLE t(id INTEGER PRIMARY KEY, net, gross AS (net * 2) \(storage)); INSERT INTO t VALUES(1,4)",
            new: "CREATE TABLE t(gross, id INTEGER PRIMARY KEY, net)")
        #expect(try test.run(RowRule(table: "t")) == [TableOutcome(table: "t", selected: 1, carried: 1)])
        #expect(try test.rows("SELECT id, net, gross FROM t") == ["1,4,8"])
    }
}
