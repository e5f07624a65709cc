import MoultBasics

/// The tables that differ between two databases, in their definition or in a row.
package enum TableChanges {
    /// Returns the names of the tables that differ, sorted. A virtual table always counts as different, because only its module
    /// could compare its content.
    package static func between(_ old: Connection, and new: Connection, ignoring: Set<String> = []) throws -> [String] {
        let (before, after) = (try tables(of: old, ignoring), try tables(of: new, ignoring))
        var changed: Set<SQLName> = []
        for (name, table) in after {
            guard let other = before[name], other == table, !table.isVirtual,
                try hasSameRows(name.text, old, new)
            else {
                changed.insert(name)
                continue
            }
        }
        return changed.union(before.keys.filter { after[$0] == nil }).sorted().map(\.text)
    }

    private struct Table: Equatable {
        let sql: [UInt8]
        let isVirtual: Bool
    }

    private static func tables(of connection: Connection, _ ignored: Set<String>) throws -> [SQLName: Table] {
        let definitions = try connection.query("SELECT name, sql FROM main.sqlite_schema WHERE type = 'table'")
        var tables: [SQLName: Table] = [:]
        for row in try connection.query("PRAGMA main.table_list") {
            guard case .text(let name) = row[1], case .text(let kind) = row[2], ["table", "virtual"].contains(kind),
                !SQLName(name).isInternal, !ignored.contains(name)
            else { continue }
            let sql = definitions.first { $0[0] == .text(name) }?[1] ?? .null
            guard case .text(let sql) = sql else { continue }
            tables[SQLName(name)] = Table(sql: Array(sql.utf8), isVirtual: kind == "virtual")
        }
        return tables
    }

    /// Returns whether both tables have the same rows. Reads them side by side in key order, up to the first difference.
    private static func hasSameRows(_ name: String, _ old: Connection, _ new: Connection) throws -> Bool {
        let sql = "SELECT * FROM main.\(quoteIdentifier(name))"
        return try old.withStatement(sql) { before in
            try new.withStatement(sql) { after in
                while true {
                    let (one, other) = (try before.step(), try after.step())
                    if one != other { return false }
                    if !one { return true }
                    if try before.row() != after.row() { return false }
                }
            }
        }
    }
}
