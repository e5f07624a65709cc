import MoultBasics
import MoultFiles
import MoultRows
import MoultSQLite
import TestSupport
import Testing

/// Rows are carried over from a copy, an app changes the database, and the difference is carried over. The oracle is a transfer of
/// all rows: if the difference is carried over at all, the new databases must be equal.
@Suite struct RowUpdateTests {
    private static let types = ["", "TEXT", "INTEGER", "BLOB", "NUMERIC"]
    private static let values = ["NULL", "0", "1", "2", "'a'", "'A'", "'b'", "'1'", "x'61'", "2.5", "'x y'"]

    private static func schema(_ random: inout SeededRandom) -> String {
        let columns = "a \(random.pick(types)), b \(random.pick(types))"
        var sql =
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1: "CREATE TABLE t(id INTEGER PRIMARY KEY, mine INT, \(columns))"
            case 2: "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, mine INT, \(columns))"
            case 3: "CREATE TABLE t(id TEXT PRIMARY KEY, mine INT, \(columns))"
            case 4: "CREATE TABLE t(id INT PRIMARY KEY, mine INT, \(columns)) WITHOUT ROWID"
            default: "CREATE TABLE t(id, mine INT, \(columns))"
            }
        if random.chance(30) { sql += "; CREATE UNIQUE INDEX u ON t(a, b)" }
        if random.chance(30), !sql.contains("WITHOUT ROWID") {
            sql += "; CREATE VIRTUAL TABLE f USING fts5(a, content='t')"
        }
        if random.chance(30) { sql += "; CREATE TABLE child(id INTEGER PRIMARY KEY, t REFERENCES t(id))" }
        return sql + "; CREATE TABLE other(x)"
    }

    private static func statement(_ random: inout SeededRandom, isApp: Bool, _ ids: Range<Int>) -> String {
        let id = Int.random(in: ids, using: &random)
        let (a, b) = (random.pick(values), random.pick(values))
        let mine = isApp ? 1 : 0
        return switch Int.random(in: 0..<(isApp ? 5 : 2), using: &random) {
        case 0, 1: "INSERT OR IGNORE INTO t(id, mine, a, b) VALUES(\(id), \(mine), \(a), \(b))"
        case 2: "UPDATE OR IGNORE t SET a = \(a) WHERE id = \(id)"
        case 3: "UPDATE OR IGNORE t SET mine = 1 - mine WHERE id = \(id)"
        default: "DELETE FROM t WHERE id = \(id)"
        }
    }

    private static func run(_ path: String, _ statements: [String]) throws {
        let connection = try Connection(path: path, access: .readWriteCreate)
        for statement in statements { try connection.execute(statement) }
        try connection.close()
    }

    /// Returns all rows of the tables, whatever their implicit rowids are.
    private static func content(_ path: String) throws -> [String] {
        let connection = try Connection(path: path, access: .readWrite)
        var all: [String] = []
        for table in ["t", "child", "other", "moult_rejected", "sqlite_sequence"] {
            guard try connection.int("SELECT count(*) FROM sqlite_schema WHERE name = '\(table)'") > 0 else { continue }
            let label = table == "moult_rejected" ? "\"table\", reason, row" : "*"
            let rows = try connection.query("SELECT \(label) FROM \(table)")
            all += rows.map { row in "\(table) \(row.map(\.description))" }.sorted()
        }
        if try connection.int("SELECT count(*) FROM sqlite_schema WHERE name = 'f'") > 0 {
            all += try connection.query("SELECT count(*) FROM f('a')").map { "found \($0)" }
        }
        #expect(try connection.integrityCheck() == [])
        try connection.close()
        return all
    }

    private static func rules(_ condition: String?, _ path: String) throws -> [RowRule] {
        let connection = try Connection(path: path, access: .readOnly)
        let hasChild = try connection.int("SELECT count(*) FROM sqlite_schema WHERE name = 'child'") > 0
        try connection.close()
        return [RowRule(table: "t", conditions: [condition], onReject: .record)]
            + (hasChild ? [RowRule(table: "child", onReject: .record)] : [])
    }

    @Test func `the difference leads to the same rows as a transfer of all rows`() throws {
        let scratch = try Scratch()
        var updated = 0
        let count = 400
        for seed in 0..<count {
            var random = SeededRandom(seed)
            let (live, copy, release) = (
                scratch.path("\(seed)-live"), scratch.path("\(seed)-copy"), scratch.path("\(seed)-release")
            )
            let schema = Self.schema(&random)
            let hasChild = schema.contains("child")
            // The ids of the app and of the release overlap in some cases, so that there are conflicts.
            let shipped = random.chance(50) ? 1..<8 : 1..<4
            let mine = random.chance(50) ? 5..<15 : 3..<15
            try Self.run(release, [schema] + (0..<6).map { _ in Self.statement(&random, isApp: false, shipped) })
            try Self.run(
                live,
                [schema] + (0..<12).map { _ in Self.statement(&random, isApp: true, mine) }
                    + (hasChild && random.chance(50) ? ["INSERT INTO child(t) SELECT id FROM t LIMIT 2"] : []))
            try Files.copy(live, to: copy, mode: 0o600)
            let changes = (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                Self.statement(&random, isApp: true, mine)
            }
            try Self.run(live, changes)
            let condition = random.chance(50) ? "mine = 1" : nil
            let transfer = RowTransfer(
                rules: try Self.rules(condition, live), rejects: RejectTable(label: "2.0.0"))
            // The oracle: all rows of the changed database.
            let (expected, new) = (scratch.path("\(seed)-expected"), scratch.path("\(seed)-new"))
            for path in [expected, new] { try Files.copy(release, to: path, mode: 0o600) }
            let now = try Connection(path: live, access: .readWrite)
            let all = try Connection(path: expected, access: .readWrite)
            let outcomes = try all.transaction(.immediate) { try transfer.run(from: now, to: all) }
            try all.close()
            // The rows of the copy, and then the difference.
            let (before, pristine) = (
                try Connection(path: copy, access: .immutable), try Connection(path: release, access: .immutable)
            )
            let target = try Connection(path: new, access: .readWrite)
            let first = try target.transaction(.immediate) { try transfer.run(from: before, to: target) }
            try target.execute("BEGIN IMMEDIATE")
            let result = try RowUpdate(transfer, after: first).run(
                from: before, to: now, in: target, pristine: pristine)
            try target.execute(result == nil ? "ROLLBACK" : "COMMIT")
            for connection in [now, target, before, pristine] { try connection.close() }
            guard let result else { continue }
            updated += 1
            let note = Comment("seed \(seed): \(schema); \(changes)")
            #expect(try Self.content(new) == Self.content(expected), note)
            #expect(result == outcomes, note)
        }
        // Most cases must not need a transfer of all rows.
        #expect(updated > count / 3, "\(updated) of \(count)")
    }

    @Test func `another schema, or a changed table of rejected rows, needs a transfer of all rows`() throws {
        let scratch = try Scratch()
        for change in [
            "ALTER TABLE t ADD COLUMN c", "CREATE INDEX i ON t(a)",
            "INSERT INTO moult_rejected VALUES('1', 't', 'r', '{}')",
        ] {
            let (live, copy, new) = (scratch.path("live"), scratch.path("copy"), scratch.path("new"))
            for path in [live, copy, new] { try Files.remove(path) }
            let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, a)"
            try Self.run(
                live,
                [
                    schema, "INSERT INTO t VALUES(1, 'x')",
                    "CREATE TABLE moult_rejected(release TEXT, \"table\" TEXT, reason TEXT, row TEXT)",
                ])
            try Self.run(new, [schema])
            try Files.copy(live, to: copy, mode: 0o600)
            try Self.run(live, [change])
            let transfer = RowTransfer(rules: [RowRule(table: "t")], rejects: RejectTable(label: "2.0.0"))
            let (before, now) = (
                try Connection(path: copy, access: .immutable), try Connection(path: live, access: .readWrite)
            )
            let target = try Connection(path: new, access: .readWrite)
            let first = try target.transaction(.immediate) { try transfer.run(from: before, to: target) }
            try target.execute("BEGIN IMMEDIATE")
            let pristine = try Connection(path: copy, access: .immutable)
            let result = try RowUpdate(transfer, after: first).run(
                from: before, to: now, in: target, pristine: pristine)
            #expect(result == nil, "\(change)")
            try target.execute("ROLLBACK")
            for connection in [before, now, target, pristine] { try connection.close() }
        }
    }

    /// Carries rows over from a copy, runs a statement in the database, and returns the result of carrying the difference over.
    private static func update(
        _ scratch: Scratch, schema: String, rows: String, rules: [RowRule], change: String
    ) throws -> [TableOutcome]? {
        let (live, copy, new) = (scratch.path("live"), scratch.path("copy"), scratch.path("new"))
        for path in [live, copy, new] { try Files.remove(path) }
        try run(new, [schema])
        try run(live, [schema, rows])
        try Files.copy(live, to: copy, mode: 0o600)
        try run(live, [change])
        let (before, now, target, pristine) = (
            try Connection(path: copy, access: .immutable), try Connection(path: live, access: .readWrite),
            try Connection(path: new, access: .readWrite), try Connection(path: copy, access: .immutable)
        )
        let transfer = RowTransfer(rules: rules, rejects: RejectTable(label: "2.0.0"))
        let first = try target.transaction(.immediate) { try transfer.run(from: before, to: target) }
        try target.execute("BEGIN IMMEDIATE")
        let result = try RowUpdate(transfer, after: first).run(from: before, to: now, in: target, pristine: pristine)
        try target.execute("ROLLBACK")
        for connection in [before, now, target, pristine] { try connection.close() }
        return result
    }

    @Test(arguments: [
        "x IN (SELECT x FROM u)", "x in u", "EXISTS (SELECT 1 FROM u WHERE u.x = t.x)",
        "id <= (SELECT count(*) FROM u)",
    ])
    func `a condition that reads another table needs a transfer of all rows`(condition: String) throws {
        // The row of t is the same as in the copy, but is selected only now.
        let result = try Self.update(
            Scratch(), schema: "CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE TABLE u(x)",
            rows: "INSERT INTO t VALUES(1, 'kept')",
            rules: [RowRule(table: "t", conditions: [condition])], change: "INSERT INTO u VALUES('kept')")
        #expect(result == nil)
    }

    @Test(arguments: ["x IN ('kept', 'other')", "x = 'select' OR x = 'kept' /* in u */"])
    func `a condition of the row alone needs only the difference`(condition: String) throws {
        let result = try Self.update(
            Scratch(), schema: "CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE TABLE u(x)",
            rows: "INSERT INTO t VALUES(1, 'kept')",
            rules: [RowRule(table: "t", conditions: [condition])], change: "INSERT INTO t VALUES(2, 'kept')")
        #expect(result?.map(\.carried) == [2])
    }

    @Test func `a new parent of a row that was rejected needs a transfer of all rows`() throws {
        let schema =
            "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE t(id INTEGER PRIMARY KEY, p REFERENCES p(id))"
        let rules = ["p", "t"].map { RowRule(table: $0, onReject: .record) }
        let result = try Self.update(
            Scratch(), schema: schema, rows: "INSERT INTO t VALUES(1, 7)", rules: rules,
            change: "INSERT INTO p VALUES(7)")
        #expect(result == nil)
    }
}
