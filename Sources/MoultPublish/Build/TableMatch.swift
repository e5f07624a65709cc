internal import MoultBasics
internal import MoultSQLite

/// How the rows of a table correspond in two databases with the same schema, `main` and `new`.
struct TableMatch {
    let table: String
    /// The columns that can be written, including those of the key.
    let columns: [String]
    private let key: Key

    private enum Key {
        /// A name for accessing the rowid.
        case rowid(String, alias: String?)
        /// The columns of the primary key, each with the collation of its index.
        case primary([(name: String, collation: String)])
    }

    /// Nil if the table has neither a primary key nor an accessible rowid.
    ///
    /// If the primary key is not the rowid, rows are matched by the key, because `VACUUM` may change the rowids of such a table
    /// anyway. With `keepRowids`, they are matched by the rowid, because other tables may refer to it, such as virtual tables
    /// with external content.
    init?(_ table: String, withoutRowid: Bool, keepRowids: Bool, on connection: Connection) throws {
        self.table = table
        let all = try connection.query(
            "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid", [.text(table)])
        columns = all.filter { $0[3] == .integer(0) }.compactMap(\.[0].text)
        let keyColumns = all.filter { $0[2] != .integer(0) }
        // A primary key that is not the rowid has its own index. The declared type is not sufficient: INTEGER PRIMARY KEY DESC
        // is not an alias of the rowid.
        let primary = try Self.primary(table, connection)
        let isAlias = !withoutRowid && keyColumns.count == 1 && primary.isEmpty
        if withoutRowid || !keyColumns.isEmpty && !isAlias && !keepRowids {
            if try withoutRowid || !Self.hasNull(table, primary.map(\.name), connection) {
                key = .primary(primary)
                return
            }
        }
        let taken = all.compactMap { $0[0].text?.lowercased() }
        guard let name = ["rowid", "_rowid_", "oid"].first(where: { !taken.contains($0) }) else { return nil }
        key = .rowid(name, alias: isAlias ? keyColumns[0][0].text : nil)
    }

    private static func primary(_ table: String, _ connection: Connection) throws -> [(name: String, collation: String)]
    {
        let rows = try connection.query(
            """
            SELECT x.name, x.coll FROM pragma_index_list(?1) AS i, pragma_index_xinfo(i.name) AS x
            WHERE i.origin = 'pk' AND x.key ORDER BY x.seqno
            """, [.text(table)])
        return rows.compactMap { row in row[0].text.map { ($0, row[1].text ?? "BINARY") } }
    }

    private static func hasNull(_ table: String, _ columns: [String], _ connection: Connection) throws -> Bool {
        let test = columns.map { "\(quoteIdentifier($0)) IS NULL" }.joined(separator: " OR ")
        return try ["main", "new"].contains { schema in
            try connection.int("SELECT EXISTS (SELECT 1 FROM \(schema).\(quoteIdentifier(table)) WHERE \(test))") != 0
        }
    }

    // The SQL. `o` is a row of the old database, `n` is a row of the new one, and `x` is one of the keys of changed rows.

    var main: String { "main.\(quoteIdentifier(table))" }
    var new: String { "new.\(quoteIdentifier(table))" }

    /// Returns the key columns of the row with this alias.
    func keys(of alias: String) -> [String] {
        switch key {
        case .rowid(let name, _): ["\(alias).\(name)"]
        case .primary(let columns): columns.map { "\(alias).\(quoteIdentifier($0.name))" }
        }
    }

    /// Returns a condition for rows with equal keys.
    func matches(_ a: String, _ b: String) -> String { equal(keys(of: a), keys(of: b)) }

    /// Returns the condition that the row with this alias has the key in `x`; the columns of `x` are k0, k1 and so on.
    func hasNotedKey(_ alias: String) -> String {
        let own = keys(of: alias)
        return equal(own, own.indices.map { "x.k\($0)" })
    }

    private func equal(_ left: [String], _ right: [String]) -> String {
        zip(left, right).enumerated().map { index, pair in
            // SQLite uses an index only for a comparison with the collation of the index.
            guard case .primary(let columns) = key else { return "\(pair.0) = \(pair.1)" }
            return "\(pair.0) = \(pair.1) COLLATE \(quoteIdentifier(columns[index].collation))"
        }.joined(separator: " AND ")
    }

    /// Returns the condition that a column has different values in two rows, or the same value in different storage classes.
    func differs(_ column: String, _ a: String, _ b: String) -> String {
        let name = quoteIdentifier(column)
        return "(typeof(\(a).\(name)) <> typeof(\(b).\(name)) OR \(a).\(name) IS NOT \(b).\(name) COLLATE BINARY)"
    }

    /// The columns in which matched rows can differ; key columns come last, because they can differ only under a
    /// collation.
    var comparable: [String] {
        switch key {
        case .rowid(_, let alias): return columns.filter { $0 != alias }
        case .primary(let keys):
            let names = keys.map(\.name)
            return columns.filter { !names.contains($0) } + columns.filter { names.contains($0) }
        }
    }

    /// The columns for inserting, and their values from `n`: the rowid only if no column is its alias.
    var insertable: (names: [String], values: [String]) {
        let names = columns.map(quoteIdentifier)
        let values = names.map { "n.\($0)" }
        if case .rowid(let rowid, nil) = key { return ([rowid] + names, ["n.\(rowid)"] + values) }
        return (names, values)
    }
}
