package import MoultBasics
package import MoultSQLite

/// The number of rows in each table, to detect whether a change loses any.
package struct RowCounts: Equatable, Sendable {
    package let tables: [SQLName: Int]

    package init(_ tables: [SQLName: Int]) { self.tables = tables }

    /// Counts the rows of ordinary tables, except tables of SQLite or of the modules of virtual tables.
    package init(of connection: Connection) throws {
        var tables: [SQLName: Int] = [:]
        let schema = try Schema(of: connection)
        for table in schema.ordinary {
            tables[SQLName(schema.name(table))] = try connection.rowCount(schema.name(table))
        }
        self.tables = tables
    }

    /// Returns a sentence about the lost rows; nil if none are lost.
    ///
    /// A table may be renamed, split or merged: rows of a removed table may be in a new one, or in one that has grown. A table
    /// that remains must not shrink, unless `mayShrink` allows it.
    package func loss(since before: RowCounts, mayShrink: (String, Int, Int) -> Bool) -> String? {
        var homeless = 0
        var gone: [String] = []
        for (table, old) in before.tables.sorted(by: { $0.key < $1.key }) {
            let now = tables[table]
            if let now, now >= old { continue }
            if old == 0 || mayShrink(table.text, old, now ?? 0) { continue }
            if let now { return "table \(table) would have \(now) of its \(counted(old, "row"))" }
            homeless += old
            gone.append(table.text)
        }
        let added = tables.map { max(0, $0.value - before.tables[$0.key, default: 0]) }.reduce(0, +)
        guard homeless > added else { return nil }
        let names = gone.joined(separator: ", ")
        return "\(gone.count == 1 ? "table" : "tables") \(names) had \(counted(homeless, "row")), and the other tables "
            + "would have only \(added) more"
    }
}
