import MoultBasics

/// The rows of one table that satisfy one of several conditions.
package struct RowSelection: Sendable {
    package let table: String
    /// SQL expressions, of which at least one must hold for a row; nil holds for every row.
    package let conditions: [String?]

    package init(table: String, conditions: [String?]) { (self.table, self.conditions) = (table, conditions) }

    /// How many rows of the database are selected. A misspelled column is an error, and never text.
    package func count(in connection: Connection) throws -> Int {
        try Selection.check(conditions, of: table)
        return try connection.with(.doubleQuotedStringsInDML, false) {
            Int(
                try connection.int(
                    "SELECT count(*) FROM main.\(quoteIdentifier(table))\(Selection.whereSQL(conditions))"))
        }
    }

    /// Whether the database has an ordinary table of this name.
    package static func hasTable(_ name: String, in connection: Connection) throws -> Bool {
        try connection.int(
            "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE", [.text(name)])
            > 0
    }
}
