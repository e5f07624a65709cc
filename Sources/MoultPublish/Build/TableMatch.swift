internal import MoultBasics
internal import MoultSQLite

/// How the rows of one table of two databases with the same schema belong together; they are `main` and `new`.
struct TableMatch {
    let table: String
    /// The columns that can be written; the key's, if it has any, among them.
    let columns: [String]
    private let key: Key

    private enum Key {
        /// A name by which the rowid can be reached.
        case rowid(String, alias: String?)
        /// The columns of the primary key, each with the collation of its index.
        case primary([(name: String, collation: String)])
    }

    /// Nil if the table has neither a primary key nor a rowid that can be named.
    ///
    /// Rows of a table with a primary key other than an integer are matched by it, because there `VACUUM` may change the
    /// rowid anyway; but not if rowids may be recorded elsewhere, as virtual tables with external content do.
    init?(_ table: String, withoutRowid: Bool, keepRowids: Bool, on connection: Connection) throws {
        self.table = table
        let all = try connection.query(
            "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid", [.text(table)])
        columns = all.filter { $0[3] == .integer(0) }.compactMap(\.[0].text)
        let keyColumns = all.filter { $0[2] != .integer(0) }
        // Where the primary key is not the rowid itself, it has an index of its own: INTEGER PRIMARY KEY DESC is not it.
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

    private static func primary(
        _ table: String, _ connection: Connection
    ) throws -> [(name: String, collation: String)] {
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
}

// The SQL of it. `o` is a row of the old database, `n` one of the new, `x` one of the keys of changed rows.
extension TableMatch {
    var main: String { "main.\(quoteIdentifier(table))" }
    var new: String { "new.\(quoteIdentifier(table))" }

    /// The key of the row that the alias names, as a list.
    func keys(of alias: String) -> [String] {
        switch key {
        case .rowid(let name, _): ["\(alias).\(name)"]
        case .primary(let columns): columns.map { "\(alias).\(quoteIdentifier($0.name))" }
        }
    }

    /// True for rows with equal keys.
    func matches(_ a: String, _ b: String) -> String { equal(keys(of: a), keys(of: b)) }

    /// True for the row that the alias names if its key is the one in `x`, whose columns are k0, k1 and so on.
    func isNoted(_ alias: String) -> String {
        let own = keys(of: alias)
        return equal(own, own.indices.map { "x.k\($0)" })
    }

    private func equal(_ left: [String], _ right: [String]) -> String {
        zip(left, right).enumerated().map { index, pair in
            // An index is only looked into by its own collation.
            guard case .primary(let columns) = key else { return "\(pair.0) = \(pair.1)" }
            return "\(pair.0) = \(pair.1) COLLATE \(quoteIdentifier(columns[index].collation))"
        }.joined(separator: " AND ")
    }

    /// True where a column holds another value or the same one in another storage class.
    func differs(_ column: String, _ a: String, _ b: String) -> String {
        let name = quoteIdentifier(column)
        return "(typeof(\(a).\(name)) <> typeof(\(b).\(name)) OR \(a).\(name) IS NOT \(b).\(name) COLLATE BINARY)"
    }

    /// The columns that a matched row can differ in; those of the key last, as only a collation lets them.
    var comparable: [String] {
        switch key {
        case .rowid(_, let alias): return columns.filter { $0 != alias }
        case .primary(let keys):
            let names = keys.map(\.name)
            return columns.filter { !names.contains($0) } + columns.filter { names.contains($0) }
        }
    }

    /// Names for inserting, and the values of `n` for them: the rowid only where no column is its alias.
    var insertable: (names: [String], values: [String]) {
        let names = columns.map(quoteIdentifier)
        let values = names.map { "n.\($0)" }
        if case .rowid(let rowid, nil) = key { return ([rowid] + names, ["n.\(rowid)"] + values) }
        return (names, values)
    }
}
