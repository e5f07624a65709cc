import MoultBasics
import MoultSQLite

/// Evaluates the default of a column as SQLite does when it inserts a row.
///
/// The same text may mean something else in a query: after DEFAULT, `"unit"` and `unit` are strings; in a query, they are
/// columns.
enum ColumnDefault {
    /// Returns the value as a SQL literal; nil if it may differ from row to row, or cannot be evaluated.
    static func literal(of text: String) throws -> String? {
        // Functions may return a different value for each row.
        if text.contains("(") || text.uppercased().contains("CURRENT_") { return nil }
        let scratch = try Connection.inMemory()
        // An expression is valid only in parentheses. A name is valid only without them, and is then a string.
        let literal = try value(of: "(\(text)\n)", in: scratch) ?? value(of: text, in: scratch)
        try scratch.close()
        return literal
    }

    private static func value(of text: String, in scratch: Connection) throws -> String? {
        do {
            _ = try scratch.query("CREATE TABLE t(c DEFAULT \(text))")
            _ = try scratch.query("INSERT INTO t DEFAULT VALUES")
            // `quote` writes infinity as a word that SQL does not know.
            let sql = "SELECT CASE c WHEN 9e999 THEN '9e999' WHEN -9e999 THEN '-9e999' ELSE quote(c) END FROM t"
            return try scratch.scalar(sql)?.textOrEmpty
        } catch let error as MoultError where error.sqlite?.resultCode.primary == .error {
            _ = try scratch.query("DROP TABLE IF EXISTS t")
            return nil
        }
    }
}
