internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// Carries the rows that a release preserves from the old content of a shared database into the new.
struct RowCarrier {
    let database: Database
    let release: Version

    /// What became of the rows of one table.
    struct Carried {
        let table: String
        var found = 0
        var carried = 0
        var shippedKept = 0
        var rejected = 0
    }

    /// Runs in a transaction of the new database, which the caller has begun; nothing of the old one is changed.
    @discardableResult
    func carry(from old: Connection, to new: Connection) throws -> [Carried] {
        let all = try database.preserve.compactMap { try carry($0, from: old, to: new) }
        try proveForeignKeys(new)
        return all
    }

    /// Finds out whether the rows fit, and takes them out again.
    func trial(from old: Connection, to new: Connection) throws {
        try new.execute("BEGIN IMMEDIATE")
        try carry(from: old, to: new)
        try new.execute("ROLLBACK")
    }

    private func carry(_ preserve: Database.Preserve, from old: Connection, to new: Connection) throws -> Carried? {
        let before = try columns(preserve.table, old)
        guard !before.isEmpty else { return nil }
        let after = try columns(preserve.table, new)
        guard !after.isEmpty else {
            throw refused("table \(preserve.table) is gone in release \(release), and its rows were to be preserved")
        }
        // By name; a column that is new gets its default, one that is gone is left behind.
        let pairs = before.compactMap { column -> (old: String, new: String)? in
            let name = preserve.columns[column] ?? column
            return after.first { $0.lowercased() == name.lowercased() }.map { (column, $0) }
        }
        guard !pairs.isEmpty else {
            throw refused("table \(preserve.table) has no column in common with its predecessor")
        }
        let condition = preserve.where.map { " WHERE (\($0))" } ?? ""
        let select =
            "SELECT \(pairs.map { quoteIdentifier($0.old) }.joined(separator: ", ")) FROM \(quoteIdentifier(preserve.table))\(condition)"
        let into =
            "INTO \(quoteIdentifier(preserve.table))(\(pairs.map { quoteIdentifier($0.new) }.joined(separator: ", "))) VALUES(\(pairs.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))"
        var result = Carried(table: preserve.table)
        try old.withStatement(select) { rows in
            guard rows.isReadOnly else { throw refused("its condition \"\(preserve.where ?? "")\" would write") }
            try new.withStatement("INSERT \(into)") { insert in
                try new.withStatement("INSERT OR REPLACE \(into)") { replace in
                    while try rows.step() {
                        result.found += 1
                        try carry(rows.row(), preserve, insert, replace, pairs.map(\.new), new, &result)
                    }
                }
            }
        }
        // Counted again: every row that was found must have gone somewhere.
        guard result.found == result.carried + result.shippedKept + result.rejected else {
            throw refused(
                "\(result.found) rows of \(preserve.table) were found, and only \(result.carried) were carried over")
        }
        return result
    }

    private func carry(
        _ row: [Value], _ preserve: Database.Preserve, _ insert: borrowing Statement, _ replace: borrowing Statement,
        _ columns: [String], _ new: Connection, _ result: inout Carried
    ) throws {
        guard let conflict = try attempt(insert, row) else {
            result.carried += 1
            return
        }
        if conflict.isUniqueness {
            switch preserve.onConflict {
            case .keepNew: result.shippedKept += 1
            case .fail: throw refused("a row of \(preserve.table) conflicts with a shipped one: \(conflict.text)")
            case .keepUser:
                if let other = try attempt(replace, row) {
                    try reject(row, preserve, other.text, columns, new, &result)
                } else {
                    result.carried += 1
                }
            }
        } else {
            try reject(row, preserve, conflict.text, columns, new, &result)
        }
    }

    private struct Conflict {
        let isUniqueness: Bool
        let text: String
    }

    /// Runs the statement with the row; nil if it went in, else which constraint it hurt.
    private func attempt(_ statement: borrowing Statement, _ row: [Value]) throws -> Conflict? {
        defer { statement.reset() }
        do {
            try statement.bind(row)
            try statement.run()
            return nil
        } catch let error as MoultError {
            guard let sqlite = error.sqlite, [ResultCode.constraint, .mismatch].contains(sqlite.resultCode.primary)
            else { throw error }
            // SQLITE_CONSTRAINT_PRIMARYKEY, _UNIQUE and _ROWID
            let unique = [19 | 6 << 8, 19 | 8 << 8, 19 | 10 << 8].contains(sqlite.resultCode.rawValue)
            return Conflict(isUniqueness: unique, text: sqlite.message)
        }
    }

    private func reject(
        _ row: [Value], _ preserve: Database.Preserve, _ reason: String, _ columns: [String], _ new: Connection,
        _ result: inout Carried
    ) throws {
        guard preserve.onReject == .table else {
            throw refused("a row of \(preserve.table) does not fit into release \(release): \(reason)")
        }
        try new.execute(ReleaseMarker.createRejects)
        let text = JSON.object(zip(columns, row).map { .init($0, Self.json($1)) }).line
        _ = try new.query(
            ReleaseMarker.insertReject, [.text(release.description), .text(preserve.table), .text(reason), .text(text)])
        result.rejected += 1
    }

    private static func json(_ value: Value) -> JSON {
        switch value {
        case .null: .null
        case .integer(let number): .integer(number)
        case .real(let number): .number(number)
        case .text(let text): .string(text)
        case .blob(let bytes): .string("x'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'")
        }
    }

    private func columns(_ table: String, _ connection: Connection) throws -> [String] {
        // Generated columns are hidden here, and cannot be written.
        try connection.query("SELECT name FROM pragma_table_info(?1)", [.text(table)]).compactMap {
            if case .text(let name)? = $0.first { name } else { nil }
        }
    }

    private func proveForeignKeys(_ new: Connection) throws {
        if let finding = try new.foreignKeyCheck(limit: 1).first {
            throw refused("after carrying rows over, \(finding)")
        }
    }

    private func refused(_ why: String) -> MoultError {
        MoultError(
            .preserve, .refused, what: "the rows to preserve in \(database.name) do not fit into release \(release)",
            why: why, now: "Publish the release with a \"preserve\" that says what shall happen to them.")
    }
}

extension MoultError.Code {
    /// Rows that a release preserves do not fit into it.
    static let preserve = Self(630)
    /// A living database is in use.
    static let inUse = Self(631)
}
