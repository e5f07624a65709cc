import MoultBasics
import MoultSQLite

/// Maps the columns of an old table to those of the new one.
struct ColumnMap {
    /// Positions in the stored columns of the old and the new table.
    let pairs: [(old: Int, new: Int)]
    /// Positions of the old columns that the new table lacks.
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

    /// Returns an expression that is true for old rows whose dropped columns have a value other than NULL and the default.
    func losesValue(_ old: TableLayout, countsGenerated: Bool = true) throws -> String {
        let tests = try dropped.filter { countsGenerated || !old.columns[$0].isGenerated }.map { place in
            let column = quoteIdentifier(old.columns[place].name)
            guard let value = try old.columns[place].defaultValue.flatMap(ColumnDefault.literal(of:)) else {
                return "\(column) IS NOT NULL"
            }
            return "(\(column) IS NOT NULL AND \(column) IS NOT (\(value)) COLLATE BINARY)"
        }
        return tests.isEmpty ? "0" : tests.joined(separator: " OR ")
    }
}
