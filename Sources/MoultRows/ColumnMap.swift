import MoultBasics
import MoultSQLite

struct ColumnMap {
    /// Positions in the stored columns of the old and the new table.
    let pairs: [(old: Int, new: Int)]
    let dropped: [Int]

    /// A renamed column maps to its new name, any other column to the column with the same name.
    init(_ old: TableLayout, _ new: TableLayout, renamed: [String: String]) throws {
        let names = Dictionary(renamed.map { (SQLName($0), $1) }) { first, _ in first }
        var taken: [Int: Int] = [:]
        for place in old.columns.indices {
            guard let name = names[SQLName(old.columns[place].name)] else { continue }
            guard let target = new.place(of: name) else {
                throw MoultError(
                    .selection, .refused, what: "cannot carry over the rows of table \(old.name)",
                    why:
                        "column \(old.columns[place].name) is renamed to \(name), and the new table has no such column",
                    now: didYouMean(name, among: new.columns.map(\.name)))
            }
            if let other = taken.updateValue(place, forKey: target) {
                throw MoultError(
                    .selection, .refused, what: "cannot carry over the rows of table \(old.name)",
                    why:
                        "its columns \(old.columns[other].name) and \(old.columns[place].name) would both become \(name)",
                    now: "The publisher of the release must give them different names in \"columns\".")
            }
        }
        for place in old.columns.indices where names[SQLName(old.columns[place].name)] == nil {
            // Renamed columns take precedence.
            guard let target = new.place(of: old.columns[place].name), taken[target] == nil else { continue }
            taken[target] = place
        }
        pairs = taken.map { ($0.value, $0.key) }.sorted { $0.old < $1.old }
        let placed = Set(pairs.map(\.old))
        dropped = old.columns.indices.filter { !placed.contains($0) }
    }

    /// Returns the places of these columns of the new table in an old row, which begins with its rowid or NULL; nil if the old table
    /// lacks one of them.
    func places(_ columns: [Int]) -> [Int32]? {
        let olds = Dictionary(pairs.map { ($0.new, Int32($0.old + 1)) }) { first, _ in first }
        let found = columns.compactMap { olds[$0] }
        return found.count == columns.count ? found : nil
    }

    /// Returns an expression that is true for old rows whose dropped columns have a value other than NULL and the default.
    func losesValue(_ old: TableLayout, countsGenerated: Bool = true) throws -> String {
        let tests = try dropped.filter { countsGenerated || !old.columns[$0].isGenerated }.map { place in
            let column = quoteIdentifier(old.columns[place].name)
            guard let value = try old.columns[place].defaultValue.flatMap(Self.literal(ofDefault:)) else {
                return "\(column) IS NOT NULL"
            }
            return "(\(column) IS NOT NULL AND \(column) IS NOT (\(value)) COLLATE BINARY)"
        }
        return tests.isEmpty ? "0" : tests.joined(separator: " OR ")
    }

    // MARK: defaults

    /// Evaluates the default of a column as SQLite does when it inserts a row: after DEFAULT, `"unit"` and `unit` are strings; in a
    /// query, they are columns. Returns the value as a SQL literal; nil if it may differ from row to row, or cannot be evaluated.
    private static func literal(ofDefault text: String) throws -> String? {
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
