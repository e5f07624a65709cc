import MoultFiles
import MoultPublish
import MoultSQLite
import TestSupport
import Testing

/// Random databases and random changes, compared with the results of SQL queries over both files.
@Suite struct RandomDiffTests {
    struct Shape: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let table: String
        let key: [String]
        var pageSize = 4096
        /// The maximum length of texts, so that some rows need more than one page.
        var longest = 40
        var rows = 3000
    }

    static let shapes = [
        Shape(
            testDescription: "integer key", table: "(id INTEGER PRIMARY KEY, a, b TEXT, c REAL)", key: ["id"],
            rows: 20_000
        ),
        Shape(
            testDescription: "small pages, deep trees", table: "(id INTEGER PRIMARY KEY, a, b TEXT, c REAL)",
            key: ["id"], pageSize: 512, rows: 8000),
        Shape(
            testDescription: "rows over several pages", table: "(id INTEGER PRIMARY KEY, a, b TEXT, c REAL)",
            key: ["id"], pageSize: 512, longest: 3000, rows: 500),
        Shape(
            testDescription: "largest pages", table: "(id INTEGER PRIMARY KEY, a, b TEXT, c REAL)", key: ["id"],
            pageSize: 65_536, longest: 300),
        Shape(
            testDescription: "without rowid", table: "(id INTEGER, a, b TEXT, c REAL, PRIMARY KEY (id)) WITHOUT ROWID",
            key: ["id"], longest: 800),
        Shape(testDescription: "unique key", table: "(id TEXT PRIMARY KEY, a, b TEXT, c REAL)", key: ["id"]),
    ]

    @Test(arguments: shapes, [1, 2, 3]) func `a comparison of random changes agrees with SQL`(
        _ shape: Shape, seed: Int
    ) throws {
        let scratch = try Scratch()
        let old = scratch.path("old.db")
        try Shell.must(["sqlite3", old], input: Self.script(shape, seed: seed))
        try Shell.must(["cp", old, scratch.path("new.db")])
        let new = scratch.path("new.db")
        let connection = try Connection(path: new, access: .readWrite)
        var random = SeededRandom(seed)
        try connection.execute(
            """
            BEGIN;
            DELETE FROM t WHERE abs(c * 1000003) % 97 = \(random.next() % 97);
            UPDATE t SET a = a || 'x' WHERE abs(c * 1000003) % 89 = \(random.next() % 89);
            UPDATE t SET b = b || 'y', c = c + 1 WHERE abs(c * 1000003) % 83 = \(random.next() % 83);
            UPDATE t SET a = a WHERE abs(c * 1000003) % 7 = 0;
            INSERT INTO t SELECT 1000000 + rowid, 'new', b, c FROM (SELECT row_number() OVER () AS rowid, b, c FROM t LIMIT 20);
            COMMIT;
            """)
        // Moves the same rows to different pages.
        if seed == 3 { try connection.execute("VACUUM") }
        try connection.close()

        let table = try #require(try DatabaseComparison("x", old: old, new: new).diff().tables.first)
        let expected = try Self.expected(shape, old, new)
        #expect([table.added, table.removed, table.changed] == expected)
        #expect(expected.allSatisfy { $0 > 0 })
        #expect(table.method == .primaryKey(["id"]))
        let back = try #require(try DatabaseComparison("x", old: new, new: old).diff().tables.first)
        #expect([back.removed, back.added, back.changed] == expected)
    }

    private static func script(_ shape: Shape, seed: Int) -> String {
        var random = SeededRandom(seed)
        var sql = "PRAGMA page_size = \(shape.pageSize); BEGIN; CREATE TABLE t \(shape.table);"
        for row in 1...shape.rows {
            let length = Int(random.next() % UInt64(shape.longest))
            let text = String(repeating: "abcdefgh"[Int(random.next() % 8)], count: length)
            let value = ["NULL", "\(random.next() % 1000)", "'\(text)'", "x'\(random.next() % 90 + 10)'"]
            // The keys have gaps, and the rows are not in the order of the keys.
            sql += "INSERT INTO t VALUES (\(row * 7919 % 1_000_003), \(value[Int(random.next() % 4)]), '\(text)', "
            sql += "\(Double(random.next() % 1_000_000) / 7));"
        }
        return sql + "COMMIT;"
    }

    private static func expected(_ shape: Shape, _ old: String, _ new: String) throws -> [Int] {
        let connection = try Connection(path: new, access: .readOnly)
        try connection.attach(old, as: "old", access: .readOnly)
        let key = shape.key.map { "o.\($0) = n.\($0)" }.joined(separator: " AND ")
        let counts = try [
            "SELECT count(*) FROM main.t n WHERE NOT EXISTS (SELECT 1 FROM old.t o WHERE \(key))",
            "SELECT count(*) FROM old.t o WHERE NOT EXISTS (SELECT 1 FROM main.t n WHERE \(key))",
            """
            SELECT count(*) FROM main.t n JOIN old.t o ON \(key)
            WHERE o.a IS NOT n.a OR typeof(o.a) <> typeof(n.a) OR o.b IS NOT n.b OR o.c IS NOT n.c
            """,
        ].map { Int(try connection.int($0)) }
        try connection.close()
        return counts
    }
}

extension String {
    fileprivate subscript(index: Int) -> Character { self[self.index(startIndex, offsetBy: index)] }
}
