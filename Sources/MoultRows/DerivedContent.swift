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

/// The counters of AUTOINCREMENT tables.
enum RowSequences {
    private static func areThere(_ connection: Connection) throws -> Bool {
        try connection.int("SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'") > 0
    }

    /// Returns the name of each table with its counter.
    static func all(in connection: Connection) throws -> [[Value]] {
        guard try areThere(connection) else { return [] }
        return try connection.query("SELECT name, max(seq) FROM main.sqlite_sequence GROUP BY name")
    }

    /// Raises the counters of a database to earlier ones, so that no id is reused.
    static func raise(_ earlier: [[Value]], in new: Connection) throws {
        guard try areThere(new) else { return }
        for row in earlier {
            guard case .integer(let before) = row[1],
                let table = try TableLayout.of(SQLName(row[0].textOrEmpty), in: new),
                try table.isAutoincrement(in: new)
            else { continue }
            let name = Value.text(table.name)
            let now = try new.scalar("SELECT max(seq) FROM main.sqlite_sequence WHERE name = ?1", [name])
            switch now {
            case .integer(let now)? where now >= before: continue
            case .integer?:
                _ = try new.query("UPDATE main.sqlite_sequence SET seq = ?1 WHERE name = ?2", [row[1], name])
            default: _ = try new.query("INSERT INTO main.sqlite_sequence(name, seq) VALUES(?2, ?1)", [row[1], name])
            }
        }
    }
}
