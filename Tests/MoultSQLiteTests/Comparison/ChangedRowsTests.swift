import MoultBasics
import MoultRows
import MoultSQLite
import TestSupport
import Testing

/// Compares the changed rows of random pairs of databases with those that SQL finds by EXCEPT over all columns.
@Suite struct ChangedRowsTests {
    @Test(.tags(.sampled), arguments: (1...2000).sampled(100))
    func `the keys of random changes agree with SQL`(_ seed: Int) throws {
        let scratch = try Scratch()
        let (old, new) = (scratch.path("old.db"), scratch.path("new.db"))
        var pair = RandomPair(seed)
        try pair.make(old, new)
        let (one, other) = (
            try Connection(path: old, access: .immutable), try Connection(path: new, access: .immutable)
        )
        let found = try ChangedRows.between(one, other, limit: 100_000)
        #expect(found.allSatisfy { $0.reload == nil })
        try one.close()
        try other.close()
        for table in pair.tables {
            let rows = found.first { $0.table == table.name }
            let expected = try table.expected(old, new)
            #expect(Self.set(rows?.inserted) == expected.inserted, "\(table.sql)")
            #expect(Self.set(rows?.updated) == expected.updated, "\(table.sql)")
            #expect(Self.set(rows?.deleted) == expected.deleted, "\(table.sql)")
            #expect(rows == nil || rows?.key == table.key)
        }
    }

    static func set(_ rows: [[Value]]?) -> Set<String> {
        Set((rows ?? []).map { $0.map(\.description).joined(separator: "|") })
    }

    @Test func `tables that cannot be compared say so`() throws {
        let scratch = try Scratch()
        let (old, new) = (scratch.path("old.db"), scratch.path("new.db"))
        let common = """
            CREATE TABLE same(id INTEGER PRIMARY KEY, t); INSERT INTO same VALUES (1, 'a');
            CREATE VIRTUAL TABLE words USING fts5(t);
            """
        try make(
            old,
            common
                + """
                CREATE TABLE gone(a); CREATE TABLE other(a); CREATE TABLE many(a);
                CREATE TABLE bad(k TEXT PRIMARY KEY) WITHOUT ROWID;
                """)
        try make(
            new,
            common
                + """
                CREATE TABLE fresh(a); CREATE TABLE other(a, b); CREATE TABLE many(a);
                INSERT INTO many WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6) SELECT i FROM n;
                CREATE TABLE bad(k TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO bad VALUES (CAST(x'ff' AS TEXT));
                """)
        let reasons = try between(old, new, limit: 5).map { "\($0.table): \($0.reload ?? "")" }
        #expect(
            reasons == [
                "bad: a key is not valid UTF-8", "fresh: it is new", "gone: it was removed",
                "many: more than 5 rows changed", "other: its definition changed", "words: it is a virtual table",
            ])
        let many = try between(old, new, limit: 6).first { $0.table == "many" }
        #expect(many?.inserted == (1...6).map { [.integer($0)] })
        #expect(many?.limited(to: 5).reload == "more than 5 rows changed")
    }

    @Test func `a key that changes only its type is an update`() throws {
        let scratch = try Scratch()
        let (old, new) = (scratch.path("old.db"), scratch.path("new.db"))
        try make(old, "CREATE TABLE t(k PRIMARY KEY, a) WITHOUT ROWID; INSERT INTO t VALUES (1, 'x');")
        try make(new, "CREATE TABLE t(k PRIMARY KEY, a) WITHOUT ROWID; INSERT INTO t VALUES (1.0, 'x');")
        #expect(try between(old, new, limit: 5).first?.updated == [[.real(1)]])
    }

    @Test func `keys in UTF-16 are compared`() throws {
        let scratch = try Scratch()
        let (old, new) = (scratch.path("old.db"), scratch.path("new.db"))
        for (path, text) in [(old, "a"), (new, "b")] {
            try make(
                path,
                """
                PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(k TEXT PRIMARY KEY) WITHOUT ROWID; CREATE TABLE r(a);
                INSERT INTO t VALUES ('\(text)'); INSERT INTO r VALUES ('\(text)');
                """)
        }
        let found = try between(old, new, limit: 5)
        #expect(found.first?.updated == [[.integer(1)]])
        #expect(found.last?.inserted == [[.text("b")]] && found.last?.deleted == [[.text("a")]])
    }

    private func make(_ path: String, _ sql: String) throws {
        let connection = try Connection(path: path, access: .readWriteCreate)
        try connection.execute(sql)
        try connection.close()
    }

    private func between(_ old: String, _ new: String, limit: Int) throws -> [ChangedRows] {
        let (one, other) = (
            try Connection(path: old, access: .immutable), try Connection(path: new, access: .immutable)
        )
        return try ChangedRows.between(one, other, limit: limit)
    }
}

/// A random database, and another one with random changes of it.
private struct RandomPair {
    var random: SeededRandom
    private(set) var tables: [Table] = []

    struct Table {
        let name: String
        let sql: String
        let key: [String]
        let columns = ["a", "b", "c"]

        /// Returns the keys that SQL finds, as literals. `quote` shows the type and the exact value.
        func expected(
            _ old: String, _ new: String
        ) throws -> (inserted: Set<String>, updated: Set<String>, deleted: Set<String>) {
            let connection = try Connection(path: new, access: .readOnly)
            try connection.attach(old, as: "old", access: .readOnly)
            let keySQL = key.map { "quote(\($0))" }.joined(separator: " || '|' || ")
            let all = (key + columns).map { "typeof(\($0)), quote(\($0))" }.joined(separator: ", ")
            func keys(_ one: String, _ other: String) throws -> Set<String> {
                let sql = """
                    SELECT k FROM (SELECT \(keySQL) AS k, \(all) FROM \(one).\(name)
                        EXCEPT SELECT \(keySQL), \(all) FROM \(other).\(name))
                    """
                return Set(try connection.query(sql).map { if case .text(let text) = $0[0] { text } else { "" } })
            }
            let (now, was) = (try keys("main", "old"), try keys("old", "main"))
            try connection.close()
            return (now.subtracting(was), now.intersection(was), was.subtracting(now))
        }
    }

    init(_ seed: Int) { random = SeededRandom(seed) }

    private mutating func below(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
    private mutating func pick(_ values: [String]) -> String { values[below(values.count)] }

    mutating func make(_ old: String, _ new: String) throws {
        let pageSize = pick(["512", "1024", "4096", "65536"])
        let encoding = pick(["UTF-8", "UTF-8", "UTF-16le"])
        // Keys in UTF-16 are not compared.
        let keyed = encoding == "UTF-8" ? 5 : 3
        for number in 0..<(1 + below(3)) {
            let name = "t\(number)"
            let (definition, key) =
                [
                    ("(id INTEGER PRIMARY KEY, a, b TEXT, c REAL)", ["id"]),
                    ("(a, b TEXT, c REAL)", ["rowid"]),
                    ("(id TEXT PRIMARY KEY, a, b, c)", ["rowid"]),
                    ("(k, a, b, c, PRIMARY KEY (k)) WITHOUT ROWID", ["k"]),
                    ("(k TEXT COLLATE NOCASE, l INT, a, b, c, PRIMARY KEY (l DESC, k)) WITHOUT ROWID", ["l", "k"]),
                ][below(keyed)]
            tables.append(Table(name: name, sql: "CREATE TABLE \(name)\(definition)", key: key))
        }
        let connection = try Connection(path: old, access: .readWriteCreate)
        try connection.execute("PRAGMA page_size = \(pageSize); PRAGMA encoding = '\(encoding)'; BEGIN;")
        for table in tables {
            try connection.execute(table.sql)
            for _ in 0..<below(200) { try insert(table, connection) }
        }
        try connection.execute("COMMIT")
        try Shell.must(["cp", old, new])
        try connection.close()
        let changed = try Connection(path: new, access: .readWrite)
        try changed.execute("BEGIN")
        for table in tables {
            for _ in 0..<below(40) { try change(table, changed) }
        }
        try changed.execute("COMMIT")
        // Moves the rows to other pages, and gives tables without INTEGER PRIMARY KEY other rowids.
        if below(4) == 0 { try changed.execute("VACUUM") }
        try changed.close()
    }

    private mutating func value() -> String {
        let length = below(8) == 0 ? below(3000) : below(12)
        let text = String(repeating: pick(["a", "é", "Z", "\u{1F600}", " "]), count: length)
        return pick([
            "NULL", "\(below(50))", "\(below(50)).0", "-0.5", "'\(text)'", "CAST('\(text)' AS BLOB)", "x'00ff'", "''",
            "9007199254740993", "1e300",
        ])
    }

    private mutating func keyValue(_ column: String) -> String {
        switch column {
        case "id": pick(["\(below(500))", "\(below(500) - 250)"])
        case "l": "\(below(9))"
        default:
            pick(["\(below(90))", "\(below(90)).5", "'k\(below(90))'", "'K\(below(90))'", "x'0\(below(9))'", "''"])
        }
    }

    private mutating func insert(_ table: Table, _ connection: Connection) throws {
        var key = table.key.filter { $0 != "rowid" }
        if table.sql.contains("id TEXT") { key = ["id"] }
        let columns = key + table.columns
        var values: [String] = []
        for column in key { values.append(keyValue(column)) }
        for _ in table.columns { values.append(value()) }
        try connection.run(
            "INSERT OR IGNORE INTO \(table.name) (\(columns.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")))"
        )
    }

    private mutating func change(_ table: Table, _ connection: Connection) throws {
        let key = table.key.joined(separator: ", ")
        let row = "(\(key)) = (SELECT \(key) FROM \(table.name) LIMIT 1 OFFSET \(below(200)))"
        switch below(4) {
        case 0: try insert(table, connection)
        case 1: try connection.run("DELETE FROM \(table.name) WHERE \(row)")
        case 2: try connection.run("UPDATE \(table.name) SET \(pick(table.columns)) = \(value()) WHERE \(row)")
        // Writes the row again with the same values.
        default: try connection.run("UPDATE \(table.name) SET a = a, c = c WHERE \(row)")
        }
    }
}
