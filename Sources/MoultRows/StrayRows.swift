import MoultBasics
import MoultSQLite

/// Rows that differ from the one at their place, stored as digests in a temporary file until their counterparts are found.
final class StrayRows {
    private struct Stray {
        let isOld: Bool
        let place: Int64
        let key: KeyDigest
        let content: KeyDigest
    }

    private(set) var count = 0
    private var pending: [Stray] = []
    /// Nil until there are many rows.
    private var file: Connection?
    private static let batch = 4096

    /// Stores a row: its place, its key and its content.
    func add(isOld: Bool, at place: Int64, key: KeyDigest, content: KeyDigest) throws {
        pending.append(Stray(isOld: isOld, place: place, key: key, content: content))
        count += 1
        if pending.count == Self.batch { _ = try flush() }
    }

    private func flush() throws -> Connection {
        let store =
            try file
            ?? .temporary("CREATE TEMP TABLE stray (is_old INT, place INT, key1 INT, key2 INT, row1 INT, row2 INT)")
        file = store
        try store.transaction(.deferred) {
            try store.withStatement("INSERT INTO temp.stray VALUES (?1, ?2, ?3, ?4, ?5, ?6)") { insert in
                for stray in pending {
                    let (key, content) = (stray.key.words, stray.content.words)
                    for (index, value) in [stray.isOld ? 1 : 0, stray.place, key.0, key.1, content.0, content.1]
                        .enumerated()
                    {
                        try insert.bind(value, at: Int32(index + 1))
                    }
                    try insert.run()
                    insert.reset()
                }
            }
        }
        pending.removeAll(keepingCapacity: true)
        return store
    }

    /// Leaves the rows without an equal one in `rest`. Equal rows cancel each other out, one for one: among rows with the same content,
    /// the first of each side, then the second, and so on.
    private func cancel() throws -> Connection {
        let store = try flush()
        try store.execute(
            """
            CREATE TEMP TABLE rest AS SELECT is_old, place, key1, key2 FROM (
                SELECT *, row_number() OVER (PARTITION BY row1, row2, is_old ORDER BY place) AS number FROM temp.stray)
            GROUP BY row1, row2, number HAVING count(*) = 1;
            DROP TABLE temp.stray;
            """)
        return store
    }

    /// Passes the places of each pair of rows that have the same key and differ, and of each row without counterpart.
    func forEachPair(_ body: (_ old: Int64?, _ new: Int64?) throws -> Void) throws {
        let sql = """
            SELECT max(CASE is_old WHEN 1 THEN place END) AS was, max(CASE is_old WHEN 0 THEN place END) AS now FROM (
                SELECT *, row_number() OVER (PARTITION BY key1, key2, is_old ORDER BY place) AS number FROM temp.rest)
            GROUP BY key1, key2, number ORDER BY coalesce(was, now)
            """
        try cancel().withStatement(sql) { pair in
            while try pair.step() {
                try body(pair.isNull(0) ? nil : pair.int64(0), pair.isNull(1) ? nil : pair.int64(1))
            }
        }
    }

    /// Passes the place of each row that has no equal one, in the order of the places.
    func forEachSingle(_ body: (_ isOld: Bool, _ place: Int64) throws -> Void) throws {
        try cancel().withStatement("SELECT is_old, place FROM temp.rest ORDER BY place") { row in
            while try row.step() { try body(row.int64(0) == 1, row.int64(1)) }
        }
    }
}
