package import MoultBasics
package import MoultSQLite

enum Selection {
    /// Returns a WHERE clause for rows that satisfy one of the conditions, and `other` if given; empty if it would select every
    /// row.
    static func whereSQL(_ conditions: [String?], and other: String? = nil, mayLookUp: Bool = true) -> String {
        let all = conditions.compactMap(\.self)
        var parts = other.map { [$0] } ?? []
        if conditions.isEmpty { parts.append("0") }
        if !conditions.isEmpty, all.count == conditions.count {
            // Each condition is on its own line, so that a comment at its end does not extend further.
            // The unary plus keeps SQLite from using an index.
            parts.append((mayLookUp ? "" : "+") + anyOf(all))
        }
        return parts.isEmpty ? "" : " WHERE \(parts.joined(separator: " AND "))"
    }

    /// Returns an expression that is true if one of the conditions is.
    static func anyOf(_ conditions: [String?]) -> String {
        "(" + conditions.map { "(\n\($0 ?? "1")\n)" }.joined(separator: " OR ") + ")"
    }

    /// Returns why a text, when put in parentheses, is not a single expression; nil if it is one.
    static func fault(_ condition: String) -> String? {
        if condition.utf8.contains(0) { return "it contains a NUL character" }
        let tokens = sqlTokens(condition)
        if tokens.isEmpty { return "it is empty" }
        var depth = 0
        for token in tokens {
            if token.isSymbol(";") { return "it has a semicolon" }
            if token.isSymbol("(") { depth += 1 }
            if token.isSymbol(")") { depth -= 1 }
            if depth < 0 { return "it closes a parenthesis that it did not open" }
        }
        return depth == 0 ? nil : "it does not close a parenthesis"
    }

    /// Returns whether a condition may read more than the row that it decides about: it has a subquery, or IN with a table.
    static func mayReadOtherRows(_ condition: String?) -> Bool {
        let tokens = sqlTokens(condition ?? "")
        return tokens.indices.contains { index in
            tokens[index].isWord("select")
                || tokens[index].isWord("in") && !tokens[(index + 1)...].prefix(1).contains { $0.isSymbol("(") }
        }
    }

    static func check(_ conditions: [String?], of table: String) throws {
        for condition in conditions.compactMap(\.self) {
            guard let fault = fault(condition) else { continue }
            throw MoultError(
                .selection, .refused, what: "cannot select rows of table \(table)",
                why: "the condition \"\(condition)\" is not one expression: \(fault)")
        }
    }
}

extension TableRows {
    /// Returns a WHERE clause for rows that satisfy one of the conditions, and `other` if given. The conditions do not look up the
    /// primary key: its order may be one that only the app knows.
    func whereSQL(_ conditions: [String?], and other: String? = nil) -> String {
        Selection.whereSQL(conditions, and: other, mayLookUp: !isPrimaryKey)
    }
}

package struct RowSelection: Sendable {
    package let table: String
    /// SQL expressions, of which at least one must be true for a row; nil selects every row.
    package let conditions: [String?]

    package init(table: String, conditions: [String?]) { (self.table, self.conditions) = (table, conditions) }

    /// Returns the number of selected rows in the database. A misspelled column is an error, and not treated as text.
    package func count(in connection: Connection) throws -> Int {
        try Selection.check(conditions, of: table)
        let rows = try TableRows(table, in: connection)
        return try connection.readingStrictly { Int(try connection.int(rows.countSQL + rows.whereSQL(conditions))) }
    }

    /// Returns the conditions, and those of the others that are valid in the database.
    package func conditions(adding others: [String], in connection: Connection) throws -> [String?] {
        try conditions
            + others.filter { other in
                let reach = try RowSelection(table: table, conditions: [other]).reach(in: connection, isChecked: true)
                return if case .rows = reach { true } else { false }
            }
    }

    /// What a transfer can select in a database.
    package enum Reach {
        /// The database has no table of this name.
        case absent
        case rows(Int)
        /// The rows cannot be selected: the table is virtual or damaged, or lacks a column that a condition uses. The number is
        /// that of its rows, as far as they can be read.
        case unselectable(Int, MoultError)
    }

    /// Returns what a transfer can select. Unless the file has passed a check, reads every value.
    package func reach(in connection: Connection, isChecked: Bool) throws -> Reach {
        guard try Self.hasTable(table, in: connection) else {
            guard let rows = try Self.countOfVirtual(table, in: connection) else { return .absent }
            let error = MoultError(
                .selection, .refused, what: "\(table) is a virtual table",
                why: "rows can be carried over only from ordinary tables")
            return .unselectable(rows, error)
        }
        var read = 0
        do {
            if isChecked { return .rows(try count(in: connection)) }
            try self.read(in: connection) { read += 1 }
            return .rows(read)
        } catch let error as MoultError where error.outcome != .busy {
            if isChecked { return .unselectable(0, error) }
            // A damaged table has at least one row that cannot be read.
            if error.code == .databaseCorrupt { return .unselectable(max(read, 1), error) }
            return .unselectable(try RowSelection(table: table, conditions: [nil]).count(in: connection), error)
        }
    }

    private func read(in connection: Connection, _ each: () -> Void) throws {
        try Selection.check(conditions, of: table)
        let columns = try TableLayout.of(SQLName(table), in: connection)?.columnsSQL ?? ["*"]
        let rows = try TableRows(table, in: connection)
        let sql = "SELECT \(columns.joined(separator: ", ")) FROM \(rows.sql)\(rows.whereSQL(conditions))"
        try connection.readingStrictly {
            try connection.withStatement(sql) { row in while try row.step() { each() } }
        }
    }

    /// Returns whether the database has an ordinary table of this name.
    package static func hasTable(_ name: String, in connection: Connection) throws -> Bool {
        try connection.int(
            """
            SELECT count(*) FROM main.sqlite_schema
            WHERE type = 'table' AND rootpage > 0 AND name = ?1 COLLATE NOCASE
            """, [.text(name)]) > 0
    }

    /// Returns the number of rows in the virtual table of this name, as counted in its own tables; nil if the database has no
    /// such table.
    private static func countOfVirtual(_ name: String, in connection: Connection) throws -> Int? {
        let (schema, key) = (try Schema(of: connection), SQLName(name))
        guard schema.all[key]?.type == "virtual" else { return nil }
        return try schema.shadows(of: key).reduce(0) { try $0 + connection.rowCount(schema.name($1)) }
    }
}

extension RowSelection {
    /// Returns the first of the tables that the database at `pristine` has, and that is in the live database under another name: an
    /// app has renamed it, and no rule selects its rows. `own` are tables of moult.
    package static func renamedTable(
        of tables: [String], in live: Connection, shipped pristine: Connection, ignoring own: Set<String>
    ) throws -> (old: String, new: String, rows: Int)? {
        let ignored = Set(own.map { SQLName($0) })
        for table in try tables.filter({ try !hasTable($0, in: live) }) {
            let columns = try columns(of: table, in: pristine)
            if columns.isEmpty { continue }
            for (name, rows) in try live.rowCounts().sorted(by: { $0.key < $1.key }) where rows > 0 {
                guard !ignored.contains(name), try !hasTable(name.text, in: pristine),
                    try Self.columns(of: name.text, in: live) == columns
                else { continue }
                return (table, name.text, rows)
            }
        }
        return nil
    }

    /// Returns the columns of a table; empty if it does not exist.
    package static func columns(of table: String, in connection: Connection) throws -> [SQLName] {
        try connection.query("SELECT name FROM pragma_table_info(?1) ORDER BY cid", [.text(table)]).compactMap {
            if case .text(let name) = $0[0] { SQLName(name) } else { nil }
        }
    }
}
