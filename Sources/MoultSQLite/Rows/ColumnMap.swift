import MoultBasics

/// Where the values of an old row go in the new table.
struct ColumnMap {
    /// Places in the stored columns of the old and of the new table.
    let pairs: [(old: Int, new: Int)]
    /// Places of the old columns that the new table lacks.
    let dropped: [Int]

    /// A renamed column goes to its new name, any other column to the column with the same name.
    init(_ old: TableLayout, _ new: TableLayout, renamed: [String: String]) throws {
        let names = Dictionary(renamed.map { (SQLName($0), $1) }) { first, _ in first }
        var taken: [Int: Int] = [:]
        for place in old.columns.indices {
            guard let name = names[SQLName(old.columns[place].name)] else { continue }
            guard let target = new.place(of: name) else {
                throw MoultError(
                    .selection, .refused, what: "cannot carry rows of table \(old.name)",
                    why:
                        "column \(old.columns[place].name) is renamed to \(name), and the new table has no such column",
                    now: didYouMean(name, among: new.columns.map(\.name)))
            }
            taken[target] = place
        }
        for place in old.columns.indices where names[SQLName(old.columns[place].name)] == nil {
            // A renamed column comes first.
            guard let target = new.place(of: old.columns[place].name), taken[target] == nil else { continue }
            taken[target] = place
        }
        pairs = taken.map { ($0.value, $0.key) }.sorted { $0.old < $1.old }
        let placed = Set(pairs.map(\.old))
        dropped = old.columns.indices.filter { !placed.contains($0) }
    }

    /// An expression that is true for old rows with a value in a dropped column that is neither NULL nor the default.
    func losesValue(_ old: TableLayout) -> String {
        let tests = dropped.map { place in
            let column = quoteIdentifier(old.columns[place].name)
            guard let value = old.columns[place].defaultValue else { return "\(column) IS NOT NULL" }
            return "(\(column) IS NOT NULL AND \(column) IS NOT (\(value)) COLLATE BINARY)"
        }
        return tests.isEmpty ? "0" : tests.joined(separator: " OR ")
    }
}
