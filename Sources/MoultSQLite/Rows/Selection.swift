import MoultBasics

/// The conditions of a rule as SQL.
enum Selection {
    /// Returns a WHERE clause for rows that satisfy one of the conditions; empty if one of them is true for every row.
    static func whereSQL(_ conditions: [String?], and other: String? = nil) -> String {
        let all = conditions.compactMap(\.self)
        var parts = other.map { [$0] } ?? []
        if conditions.isEmpty { parts.append("0") }
        if !conditions.isEmpty, all.count == conditions.count {
            // Each condition is on its own line, so that a comment at its end does not extend further.
            parts.append("(" + all.map { "(\n\($0)\n)" }.joined(separator: " OR ") + ")")
        }
        return parts.isEmpty ? "" : " WHERE \(parts.joined(separator: " AND "))"
    }

    /// Returns why a text is not a single expression inside parentheses; nil if it is.
    static func fault(_ condition: String) -> String? {
        if condition.utf8.contains(0) { return "it has a NUL character" }
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

    static func check(_ conditions: [String?], of table: String) throws {
        for condition in conditions.compactMap(\.self) {
            guard let fault = fault(condition) else { continue }
            throw MoultError(
                .selection, .refused, what: "cannot select rows of table \(table)",
                why: "the condition \"\(condition)\" is not one expression: \(fault)")
        }
    }
}

/// The rows of one table that satisfy one of several conditions.
package struct RowSelection: Sendable {
    package let table: String
    /// SQL expressions, of which at least one must be true for a row; nil selects every row.
    package let conditions: [String?]

    package init(table: String, conditions: [String?]) { (self.table, self.conditions) = (table, conditions) }

    /// Returns the number of selected rows in the database. A misspelled column is an error instead of text.
    package func count(in connection: Connection) throws -> Int {
        try Selection.check(conditions, of: table)
        return try connection.with(.doubleQuotedStringsInDML, false) {
            Int(
                try connection.int(
                    "SELECT count(*) FROM main.\(quoteIdentifier(table))\(Selection.whereSQL(conditions))"))
        }
    }

    /// Returns whether the database has an ordinary table of this name.
    package static func hasTable(_ name: String, in connection: Connection) throws -> Bool {
        try connection.int(
            "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE", [.text(name)])
            > 0
    }
}
