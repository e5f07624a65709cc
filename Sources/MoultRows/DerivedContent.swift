import MoultBasics
import MoultSQLite

extension SearchIndexes {
    /// Rebuilds the indexes of these tables, and those of views that name one of them. An index without content (`content=''`)
    /// cannot be rebuilt. Others stay as they are: a view may use functions that only the app has.
    static func rebuild(in connection: Connection, dependingOn tables: [String]) throws {
        guard !tables.isEmpty else { return }
        let changed = Set(tables.map { SQLName($0) })
        for index in try all(in: connection) {
            guard try changed.contains(index.content) || isView(index.content, of: changed, connection) else {
                continue
            }
            let name = quoteIdentifier(index.name)
            try connection.run("INSERT INTO main.\(name)(\(name)) VALUES('rebuild')")
        }
    }

    /// Returns the names of the indexes, each with the table that contains its text.
    static func all(in connection: Connection) throws -> [(name: String, content: SQLName)] {
        let sql = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND rootpage = 0"
        return try connection.query(sql).compactMap { row in
            guard let content = content(ofIndexMadeBy: row[1].textOrEmpty) else { return nil }
            return (row[0].textOrEmpty, SQLName(content))
        }
    }

    /// Returns whether a view reads one of the tables, possibly through other views.
    private static func isView(_ name: SQLName, of tables: Set<SQLName>, _ connection: Connection) throws -> Bool {
        let views = try connection.query("SELECT name, sql FROM main.sqlite_schema WHERE type = 'view'")
        let words = Dictionary(
            views.map { (SQLName($0[0].textOrEmpty), Set(sqlTokens($0[1].textOrEmpty).map { SQLName($0.text) })) }
        ) {
            first, _ in first
        }
        var (pending, seen) = ([name], Set<SQLName>())
        while let view = pending.popLast() {
            guard seen.insert(view).inserted, let read = words[view] else { continue }
            if !read.isDisjoint(with: tables) { return true }
            pending += read.filter { words[$0] != nil }
        }
        return false
    }
}
