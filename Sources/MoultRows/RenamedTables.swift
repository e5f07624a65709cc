package import MoultBasics
package import MoultSQLite

/// Finds tables that an app has renamed: no rule selects their rows.
package enum RenamedTables {
    package struct Found {
        package let old: String
        package let new: String
        package let rows: Int
    }

    /// Returns the first of the tables that the database at `pristine` has, and that is in the live database under another name.
    /// `own` are tables of moult.
    package static func first(
        of tables: [String], in live: Connection, shipped pristine: Connection, ignoring own: Set<String>
    ) throws -> Found? {
        let ignored = Set(own.map { SQLName($0) })
        for table in try tables.filter({ try !RowSelection.hasTable($0, in: live) }) {
            let columns = try columns(of: table, in: pristine)
            if columns.isEmpty { continue }
            for (name, rows) in try RowCounts(of: live).tables.sorted(by: { $0.key < $1.key }) where rows > 0 {
                guard !ignored.contains(name), try !RowSelection.hasTable(name.text, in: pristine),
                    try Self.columns(of: name.text, in: live) == columns
                else { continue }
                return Found(old: table, new: name.text, rows: rows)
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
