package import MoultBasics
package import MoultSQLite

extension Connection {
    /// Returns the number of rows in each ordinary table, except tables of SQLite or of the modules of virtual tables.
    package func rowCounts() throws -> [SQLName: Int] {
        let schema = try Schema(of: self)
        return try schema.ordinary.reduce(into: [:]) { $0[$1] = try rowCount(schema.name($1)) }
    }
}

extension [SQLName: Int] {
    /// Returns a sentence about the lost rows; nil if none are lost. A table may be renamed, split or merged: rows of a removed
    /// table may be in a new one, or in one that has grown. A table that remains must not shrink, unless `mayShrink` allows it.
    package func lossOfRows(since before: Self, mayShrink: (String, Int, Int) -> Bool) -> String? {
        var homeless = 0
        var gone: [String] = []
        for (table, old) in before.sorted(by: { $0.key < $1.key }) {
            let now = self[table]
            if let now, now >= old { continue }
            if old == 0 || mayShrink(table.text, old, now ?? 0) { continue }
            if let now { return "table \(table) would have \(now) of its \(counted(old, "row"))" }
            homeless += old
            gone.append(table.text)
        }
        let added = map { Swift.max(0, $0.value - before[$0.key, default: 0]) }.reduce(0, +)
        guard homeless > added else { return nil }
        let names = gone.joined(separator: ", ")
        return "\(gone.count == 1 ? "table" : "tables") \(names) had \(counted(homeless, "row")), and the other tables "
            + "would have only \(added) more"
    }
}

extension Schema {
    /// Returns the number of rows of a virtual table that have no equal row in another database; all of them without one.
    func countOwn(virtual name: SQLName, absentIn other: Schema?) throws -> Int {
        if isTree(name) {
            do { return try countOwn(name, absentIn: other) } catch let error as MoultError
                where error.code == .databaseCorrupt || AppNeed(error) != nil
            {
                // The rows of the tables in which it is stored can still be compared, and show any damage of these.
            }
        }
        return try shadows(of: name).reduce(0) { try $0 + countOwn($1, absentIn: other) }
    }

    private func countOwn(_ name: SQLName, absentIn other: Schema?) throws -> Int {
        let layout = try listed(name)
        guard let other, other.all[name]?.type == all[name]?.type, let before = try other.table(name) else {
            return Int(try connection.int("\(layout.rows.countSQL)"))
        }
        var count = 0
        let comparison = try RowComparison(
            .init(before, other.connection), .init(layout, connection), isWanted: { _ in false })
        _ = try comparison.run { difference, _, _ in if difference != .removed { count += 1 } }
        return count
    }
}
