import MoultPublish
import MoultSQLite
import TestSupport
import Testing

/// Tables in which most rows have moved, compared with the result of EXCEPT over both files.
@Suite struct MovedRowsTests {
    struct Shape: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let columns: String
        /// The values of row `i`; the new database has the same rows in a different order, and some changes.
        let values: String
        let method: TableDiff.Method
        /// Joins the old and new rows by their key; nil if some rows have no key, because the number of changed rows is not
        /// known then.
        var key: String?
    }

    static let shapes = [
        Shape(
            testDescription: "a text key", columns: "k TEXT PRIMARY KEY, a, b",
            values: "'k' || i, i % 13, 'text ' || i", method: .primaryKey(["k"]), key: "o.k = n.k"),
        Shape(
            testDescription: "a key of two columns in another order of letters",
            columns: "a, k2 TEXT COLLATE NOCASE, k1 INT, b, PRIMARY KEY (k1, k2)",
            values: "i % 13, CASE i % 2 WHEN 0 THEN 'K' ELSE 'k' END || i, i / 3, 'text ' || i",
            method: .primaryKey(["k1", "k2"]), key: "o.k1 = n.k1 AND o.k2 = n.k2"),
        Shape(
            testDescription: "a key with NULL in some rows", columns: "k1, k2, a, b, PRIMARY KEY (k1, k2)",
            values: "CASE WHEN i % 5 > 0 THEN i END, i % 7, i % 13, 'text ' || i", method: .primaryKey(["k1", "k2"])),
        Shape(
            testDescription: "without a key", columns: "k, a, b", values: "i, i % 13, 'text ' || i", method: .rowid),
    ]

    @Test(arguments: shapes) func `rows that only moved count as unchanged`(_ shape: Shape) throws {
        let scratch = try Scratch()
        func rows(_ numbers: ClosedRange<Int>, order: String) -> String {
            """
            WITH RECURSIVE n(i) AS (SELECT \(numbers.lowerBound) UNION ALL SELECT i + 1 FROM n WHERE i < \(numbers.upperBound))
            INSERT INTO t SELECT \(shape.values) FROM n ORDER BY \(order);
            """
        }
        let table = "CREATE TABLE t (\(shape.columns));"
        let old = try scratch.database("old.db", table + rows(1...12_500, order: "i * 7919 % 12503"))
        var random = SeededRandom(7)
        let new = try scratch.database(
            "new.db",
            """
            \(table)\(rows(1...12_500, order: "i * \(random.next() % 12_000 + 3) % 12503"))
            DELETE FROM t WHERE rowid % 97 = \(random.next() % 97);
            UPDATE t SET b = b || 'x' WHERE rowid % 89 = \(random.next() % 89);
            UPDATE t SET a = CAST(a AS TEXT) WHERE rowid % 83 = \(random.next() % 83);
            \(rows(30_001...30_150, order: "i"))
            """)
        let oracle = try Connection(path: new, access: .readOnly)
        try oracle.attach(old, as: "old", access: .readOnly)
        // All rows are distinct, so sets of rows can be compared.
        let came = Int(try oracle.int("SELECT count(*) FROM (SELECT * FROM main.t EXCEPT SELECT * FROM old.t)"))
        let went = Int(try oracle.int("SELECT count(*) FROM (SELECT * FROM old.t EXCEPT SELECT * FROM main.t)"))
        let found = try #require(try DatabaseComparison("x", old: old, new: new).diff().tables.first)
        #expect(found.method == shape.method)
        #expect([found.added + found.changed, found.removed + found.changed] == [came, went])
        #expect(came > 150 && went > 100)
        if let key = shape.key {
            #expect(found.added >= 150 && found.removed > 100 && found.changed > 100)
            let changed = try oracle.int(
                "SELECT count(*) FROM main.t n JOIN old.t o ON \(key) WHERE o.a IS NOT n.a OR o.b IS NOT n.b")
            #expect(found.changed == Int(changed))
        }
        try oracle.close()
        let back = try #require(try DatabaseComparison("x", old: new, new: old).diff().tables.first)
        #expect([back.removed, back.added, back.changed] == [found.added, found.removed, found.changed])
    }

    @Test func `samples of moved rows are complete and ordered by key`() throws {
        let scratch = try Scratch()
        let rows = """
            CREATE TABLE t (k TEXT PRIMARY KEY, a);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
            INSERT INTO t SELECT printf('%05d', i), 'a' FROM n ORDER BY i
            """
        let old = try scratch.database("old.db", "\(rows)")
        let new = try scratch.database(
            "new.db", "\(rows) DESC; UPDATE t SET a = 'b' WHERE k IN ('07000', '00300', '11000')")
        var options = DiffOptions()
        options.samples = 2
        let diff = try DatabaseComparison("x", old: old, new: new, options: options).diff()
        let samples = try #require(diff.tables.first).samples
        let keys = samples.map { $0.values.first }
        #expect(keys == [.text("00300", bytes: 5), .text("07000", bytes: 5)])
        #expect(samples.map(\.old?.last) == [.text("a", bytes: 1), .text("a", bytes: 1)])
        #expect(samples.map(\.new?.last) == [.text("b", bytes: 1), .text("b", bytes: 1)])
    }

    @Test(arguments: ["", "rowid_ INTEGER PRIMARY KEY, "])
    func `tables with the maximum number of columns can be compared`(key: String) throws {
        let scratch = try Scratch()
        let count = key.isEmpty ? 2000 : 1999
        let columns = (1...count).map { "c\($0)" }.joined(separator: ", ")
        let id = key.isEmpty ? "" : "rowid_, "
        let (old, new) = try scratch.pair(
            """
            CREATE TABLE t (\(key)\(columns));
            INSERT INTO t (\(id)c1, c\(count)) VALUES (\(key.isEmpty ? "" : "1, ")'a', 'b'), (\(key.isEmpty ? "" : "2, ")'c', 'd');
            """,
            new: "UPDATE t SET c\(count) = 'e' WHERE c1 = 'c'")
        let table = try #require(try DatabaseComparison("x", old: old, new: new).diff().tables.first)
        // The table has no key, and the query has no space for the rowid, so a changed row counts as one removed and
        // one added row.
        #expect([table.added, table.removed, table.changed] == (key.isEmpty ? [1, 1, 0] : [0, 0, 1]))
    }
}
