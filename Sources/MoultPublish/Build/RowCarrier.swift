internal import MoultBasics
internal import MoultSQLite

/// Makes the rows of a table in `main` equal to those in `new`, without touching unchanged rows.
struct RowCarrier {
    private let match: TableMatch
    private let connection: Connection
    private var main: String { match.main }
    private var new: String { match.new }

    init(_ match: TableMatch, _ connection: Connection) { (self.match, self.connection) = (match, connection) }

    /// Makes the rows equal, and counts the changes; returns false if the rows still differ.
    func carry(_ changes: inout RowChanges) throws -> Bool {
        let removed = try change(
            """
            DELETE FROM \(main) AS o WHERE NOT EXISTS (SELECT 1 FROM \(new) AS n WHERE \(match.matches("n", "o")))
            """)
        let kept = Int(try connection.int("SELECT count(*) FROM \(main)"))
        let changed = try noteChanged()
        if changed > 0 {
            try connection.execute("SAVEPOINT carry")
            do { try update() } catch let error as MoultError {
                // Two rows may have exchanged unique values, which updates of single rows cannot do in any order.
                guard case .constraint? = error.sqlite?.resultCode else { throw error }
                try connection.execute("ROLLBACK TO carry")
                _ = try change(
                    """
                    DELETE FROM \(main) AS o WHERE EXISTS (SELECT 1 FROM temp.changed AS x WHERE \(match.hasNotedKey("o")))
                    """)
            }
            try connection.execute("RELEASE carry")
        }
        let (names, values) = match.insertable
        try connection.run(
            """
            INSERT OR ABORT INTO \(main) (\(names.joined(separator: ", ")))
            SELECT \(values.joined(separator: ", ")) FROM \(new) AS n
            WHERE NOT EXISTS (SELECT 1 FROM \(main) AS o WHERE \(match.matches("o", "n")))
            """)
        try connection.execute("DROP TABLE temp.changed")
        let total = Int(try connection.int("SELECT count(*) FROM \(new)"))
        changes.removed += removed
        changes.changed += changed
        changes.added += total - kept
        changes.unchanged += kept - changed
        return try isSame(total)
    }

    /// Records the keys of the rows that exist in both tables with different values, and returns their number.
    private func noteChanged() throws -> Int {
        let keys = match.keys(of: "n").enumerated().map { "\($1) AS k\($0)" }.joined(separator: ", ")
        try connection.run(
            """
            CREATE TEMP TABLE changed AS SELECT \(keys) FROM \(new) AS n
            CROSS JOIN \(main) AS o ON \(match.matches("o", "n")) WHERE \(differs)
            """)
        return Int(try connection.int("SELECT count(*) FROM temp.changed"))
    }

    /// Updates column by column, so that an index is updated only if its own columns changed.
    private func update() throws {
        for column in match.comparable {
            let name = quoteIdentifier(column)
            try connection.run(
                """
                UPDATE OR ABORT \(main) AS o SET \(name) = n.\(name)
                FROM temp.changed AS x CROSS JOIN \(new) AS n ON \(match.hasNotedKey("n"))
                WHERE \(match.hasNotedKey("o")) AND \(match.differs(column, "o", "n"))
                """)
        }
    }

    private func isSame(_ total: Int) throws -> Bool {
        let same = """
            SELECT count(*) FROM \(new) AS n CROSS JOIN \(main) AS o ON \(match.matches("o", "n")) WHERE NOT (\(differs))
            """
        return try Int(connection.int(same)) == total && Int(connection.int("SELECT count(*) FROM \(main)")) == total
    }

    private var differs: String {
        let all = match.comparable.map { match.differs($0, "o", "n") }
        return all.isEmpty ? "0" : all.joined(separator: " OR ")
    }

    private func change(_ sql: String) throws -> Int {
        let before = try connection.totalChanges
        try connection.run(sql)
        return Int(try connection.totalChanges - before)
    }
}
