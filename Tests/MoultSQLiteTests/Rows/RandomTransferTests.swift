import MoultBasics
import MoultRows
import MoultSQLite
import TestSupport
import Testing

/// Random schemas and rows, with an oracle that predicts the place of every row.
@Suite struct RandomTransferTests {
    private static let values = [
        "NULL", "0", "1", "2", "3", "-1", "1.0", "2.5", "9e999", "'a'", "'A'", "'b'", "'1'", "'007'", "'x y'",
        "x'61'", "x''", "''", "CAST(x'C4E4FF' AS TEXT)", "CAST(x'6100' AS TEXT)", "9007199254740993", "0.1",
    ]
    private static let types = ["", "TEXT", "INTEGER", "REAL", "BLOB", "NUMERIC"]

    /// Returns SQL for a table `t` with an `id` that identifies rows, and the columns `a` to `c`.
    private func schema(_ random: inout SeededRandom) -> String {
        let columns = ["a", "b", "c"].map { name in
            "\(name) \(random.pick(Self.types))\(random.chance(10) ? " NOT NULL DEFAULT 'd'" : "")"
                + (random.chance(20) ? " COLLATE NOCASE" : "")
        }
        var sql =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: "CREATE TABLE t(id INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")))"
            case 1: "CREATE TABLE t(\(columns.joined(separator: ", ")), id INT)"
            case 2: "CREATE TABLE t(id INT NOT NULL, \(columns.joined(separator: ", ")), PRIMARY KEY(id)) WITHOUT ROWID"
            default: "CREATE TABLE t(id INT UNIQUE, \(columns.joined(separator: ", ")))"
            }
        let keys = [
            "a", "a, b", "lower(a)", "a COLLATE NOCASE", "b) WHERE (c > 1", "c",
        ]
        for index in 0..<2 where random.chance(40) {
            sql += "; CREATE UNIQUE INDEX u\(index) ON t(\(random.pick(keys)))"
        }
        return sql
    }

    private func rows(_ ids: [Int], _ random: inout SeededRandom) -> String {
        ids.map { id in
            let values = (0..<3).map { _ in random.pick(Self.values) }.joined(separator: ", ")
            return ";\nINSERT OR IGNORE INTO t(id, a, b, c) VALUES(\(id), \(values))"
        }.joined()
    }

    @Test(.tags(.sampled), arguments: (0..<500).sampled(120))
    func `every old row is found exactly once in the new content or among the rejects`(_ seed: Int) throws {
        var random = SeededRandom(seed)
        // The ids of user rows start at 1 and those of shipped rows at 6, so that some ids collide, and some of the
        // rows with the same id are equal.
        let old = schema(&random)
        let new = random.chance(50) ? old : schema(&random)
        let (once, shipped) = (rows(Array(1...9), &random), rows(Array(6...14), &random))
        // If ids need not be unique, some rows occur twice.
        let mine = random.chance(50) ? once + once : once
        let same = random.chance(50) ? rows(Array(15...17), &random) : ""
        let test = try TransferCase(old: old + mine + same, new: new + shipped + same)
        let conflict = random.pick([RowRule.Conflict.keepUser, .keepNew])
        let before = try content(test.old)
        let shippedBefore = try content(test.new)
        let outcome = try #require(
            try test.run(RowRule(table: "t", onConflict: conflict, onReject: .record)).first)
        let after = try content(test.new)
        let rejects = try rejects(test.new)
        #expect(outcome.selected == before.count)
        #expect(outcome.selected == outcome.carried + outcome.rejected)
        #expect(rejects.count == outcome.rejected + outcome.shippedLosers)
        // Removes every old row once from one of its possible places.
        var places = Bag(after)
        places.add(rejects)
        for row in before {
            let isFound = places.take(row)
            #expect(isFound, "the old row \(row) is lost")
        }
        // The remaining rows and the carried rows that equal shipped rows must be the shipped content.
        var all = Bag(after)
        all.add(rejects)
        for row in shippedBefore {
            let isFound = all.take(row)
            #expect(isFound, "the shipped row \(row) is lost")
        }
        // No other rows were created.
        #expect(after.count + rejects.count <= before.count + shippedBefore.count)
        #expect(try test.new.integrityCheck() == [])
        // A second run with the same release does not record the losing shipped rows again.
        let losers =
            try test.new.int("SELECT count(*) FROM sqlite_schema WHERE name = 'moult_rejected'") == 0
            ? 0 : outcome.shippedLosers
        if outcome.rejected == 0, conflict == .keepUser {
            let again = try test.run(RowRule(table: "t", onConflict: .keepUser, onReject: .record), label: "3.0.0")
            #expect(again.first?.carried == before.count)
            #expect(try self.rejects(test.new).count == losers)
        }
    }

    /// Rows with counts, from which rows are removed one by one.
    private struct Bag {
        private var counts: [String: Int] = [:]

        init(_ rows: [String]) { add(rows) }

        mutating func add(_ rows: [String]) { for row in rows { counts[row, default: 0] += 1 } }

        mutating func take(_ row: String) -> Bool {
            guard let count = counts[row], count > 0 else { return false }
            counts[row] = count - 1
            return true
        }
    }

    /// Returns each row in the form of a reject record, as SQLite computes it.
    private func content(_ connection: Connection) throws -> [String] {
        try connection.query(
            """
            SELECT id, typeof(id), hex(a), typeof(a), hex(b), typeof(b), hex(c), typeof(c),
                iif(typeof(a) = 'real', quote(a), ''), iif(typeof(b) = 'real', quote(b), ''),
                iif(typeof(c) = 'real', quote(c), '') FROM t
            """
        ).map { $0.map(\.description).joined(separator: "|") }
    }

    /// Returns the rejected rows, read from their records into a table without types.
    private func rejects(_ connection: Connection) throws -> [String] {
        guard try connection.int("SELECT count(*) FROM sqlite_schema WHERE name = 'moult_rejected'") > 0 else {
            return []
        }
        let copy = try Connection.inMemory()
        try copy.execute("CREATE TABLE t(id, a, b, c)")
        for row in try connection.query("SELECT row FROM moult_rejected") {
            guard case .text(let text) = row[0] else { continue }
            let json = try JSON(parsing: text, source: "a record")
            let values = try ["id", "a", "b", "c"].map { literal(try #require(json[$0])) }
            try copy.execute("INSERT INTO t VALUES(\(values.joined(separator: ", ")))")
        }
        return try content(copy)
    }

    private func literal(_ json: JSON) -> String {
        switch json {
        case .null: "NULL"
        case .integer(let number): "\(number)"
        case .number(let number): "\(number)"
        case .string(let text): "'\(text.replacing("'", with: "''"))'"
        default:
            if let real = json["real"]?.string {
                real == "Infinity" ? "9e999" : "-9e999"
            } else if let text = json["text"]?.string {
                "CAST(x'\(text)' AS TEXT)"
            } else {
                "x'\(json["blob"]?.string ?? "?")'"
            }
        }
    }
}
