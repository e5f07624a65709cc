import MoultBasics
import MoultRows
import MoultSQLite
import TestSupport
import Testing

/// The one comparison of rows: which rows are the same, changed, only new or only old.
@Suite struct RowComparisonTests {
    private static let schemas = [
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)", "CREATE TABLE t(id TEXT PRIMARY KEY COLLATE NOCASE, a, b)",
        "CREATE TABLE t(id, a, b)", "CREATE TABLE t(a, id, b, PRIMARY KEY(id, a)) WITHOUT ROWID",
        "CREATE TABLE t(id INT PRIMARY KEY, a, g AS (a || 'x') STORED, b) ",
        "CREATE TABLE t(id ANY, a ANY, b ANY) STRICT",
    ]
    private static let encodings = ["UTF-8", "UTF-16le", "UTF-16be"]

    private func compare(
        _ schema: String, _ old: String, _ new: String, encoding: String = "UTF-8", wal: Bool = false
    ) throws -> [String] {
        let scratch = try Scratch()
        func open(_ name: String, _ sql: String) throws -> Connection {
            let connection = try Connection(path: scratch.path(name), access: .readWriteCreate)
            try connection.execute(
                "PRAGMA encoding = '\(encoding)'; \(wal ? "PRAGMA journal_mode = WAL;" : "") \(schema);")
            try connection.execute(sql)
            return connection
        }
        let (one, two) = (try open("old.db", old), try open("new.db", new))
        var found: [String] = []
        try one.reading {
            try two.reading {
                let (before, after) = (
                    try #require(try Schema(of: one).table("t")), try #require(try Schema(of: two).table("t"))
                )
                let comparison = try RowComparison(.init(before, one), .init(after, two))
                let places = (old: comparison.oldPlaces, new: comparison.newPlaces)
                let counts = try comparison.run { difference, old, new in
                    let row =
                        try difference == .removed
                        ? places.old.map { try old.value($0) } : places.new.map { try new.value($0) }
                    found.append("\(difference) \(row.map(\.description).joined(separator: " "))")
                }
                #expect(Int64(counts.old) == (try one.int("SELECT count(*) FROM t")))
                #expect(Int64(counts.new) == (try two.int("SELECT count(*) FROM t")))
            }
        }
        try one.close()
        try two.close()
        return found.sorted()
    }

    @Test(arguments: schemas, encodings)
    func `rows are the same, changed, added or removed`(schema: String, encoding: String) throws {
        // In WAL mode, SQLite reads every row; otherwise the records are compared.
        for wal in [false, true] { try check(schema, encoding, wal) }
    }

    private func check(_ schema: String, _ encoding: String, _ wal: Bool) throws {
        let rows =
            "INSERT INTO t(id, a, b) VALUES (1, 'a', 'x'), (2, 'b', 'é'), (3, 'c', NULL), (4, 'd', x'00ff'), (5, 'e', 1);"
        #expect(try compare(schema, rows, rows, encoding: encoding, wal: wal).isEmpty)
        let found = try compare(
            schema, rows,
            "\(rows) UPDATE t SET b = 'y' WHERE id = 2; DELETE FROM t WHERE id = 3; INSERT INTO t(id, a, b) VALUES (9, 'z', 0); "
                + "UPDATE t SET b = 1.0 WHERE id = 5", encoding: encoding, wal: wal)
        #expect(found.map { $0.prefix { $0 != " " } } == ["added", "changed", "changed", "removed"], "\(found)")
    }

    @Test func `rows that only moved are the same, one for one`() throws {
        let schema = "CREATE TABLE t(a, b)"
        let old = "INSERT INTO t VALUES (1, 2), (1, 2), (3, 4), (5, 6)"
        #expect(
            try compare(schema, old, "INSERT INTO t(rowid, a, b) VALUES (7, 5, 6), (8, 1, 2), (9, 3, 4), (10, 1, 2)")
                .isEmpty)
        let found = try compare(schema, old, "INSERT INTO t(rowid, a, b) VALUES (7, 5, 6), (8, 1, 2), (9, 3, 4)")
        #expect(found == ["removed 2 1 2"])
        #expect(
            try compare(schema, old, "INSERT INTO t VALUES (1, 2), (1, 2), (3, 4), (5, 6), (1, 2)") == ["added 5 1 2"])
    }

    @Test func `a NULL in a key identifies no row`() throws {
        let found = try compare(
            "CREATE TABLE t(k TEXT PRIMARY KEY, a)", "INSERT INTO t VALUES (NULL, 1), (NULL, 2), ('x', 3)",
            "INSERT INTO t(rowid, k, a) VALUES (4, NULL, 2), (5, NULL, 1), (6, 'x', 3), (7, NULL, 1)")
        #expect(found == ["added NULL 1"])
    }

    /// SQLite converts both texts to the same UTF-8.
    @Test func `texts that are not valid UTF-16 are compared by their bytes`() throws {
        let found = try compare(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a)",
            "INSERT INTO t VALUES (1, CAST(x'00d84100' AS TEXT)), (2, CAST(x'00d84100' AS TEXT))",
            "INSERT INTO t VALUES (1, CAST(x'00d84100' AS TEXT)), (2, CAST(x'00dc4100' AS TEXT))",
            encoding: "UTF-16le")
        #expect(found.count == 1 && found[0].hasPrefix("changed 2"), "\(found)")
    }

    @Test(arguments: [false, true])
    func `a comparison that changes from records to statements finds each row once`(isKeyed: Bool) throws {
        let rows =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) INSERT INTO t SELECT "
        let schema = isKeyed ? "CREATE TABLE t(k INTEGER PRIMARY KEY, a)" : "CREATE TABLE t(k TEXT PRIMARY KEY, a)"
        let found = try compare(
            schema, rows + "i, i FROM n",
            rows + "i, i + (i % 3 = 0) FROM n; DELETE FROM t WHERE CAST(k AS INT) % 1000 = 7")
        #expect(Set(found).count == found.count)
        #expect(found.count { $0.hasPrefix("changed") } == 10_000 - 10 && found.count { $0.hasPrefix("removed") } == 30)
    }
}
