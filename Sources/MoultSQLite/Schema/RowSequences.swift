import MoultBasics

package enum RowSequences {
    private static func areThere(_ connection: Connection) throws -> Bool {
        try connection.int("SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'") > 0
    }

    package static func all(in connection: Connection) throws -> [[Value]] {
        guard try areThere(connection) else { return [] }
        return try connection.query("SELECT name, max(seq) FROM main.sqlite_sequence GROUP BY name")
    }

    /// Raises the counters of a database to earlier ones, so that no id is reused.
    package static func raise(_ earlier: [[Value]], in new: Connection) throws {
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
