internal import MoultBasics
internal import MoultSQLite

/// Unmatched rows, stored as digests in a temporary file until their counterparts are found. Every process uses a
/// random seed, and digests have 128 bits, so an attacker cannot create two rows with the same digest.
final class StrayRows {
    enum Side: Int64 { case old, new }

    private let store: Connection
    private var pending: [Stray] = []

    private struct Stray {
        let side: Side
        let place: Int64
        let key: (Int64, Int64)
        let content: (Int64, Int64)
    }

    private static let batch = 4096

    init() throws {
        store = try Connection.inMemory()
        // SQLite stores temporary tables in an unnamed file, with a small cache.
        try store.execute(
            """
            PRAGMA temp_store = FILE;
            CREATE TEMP TABLE stray (side INT, place INT, key1 INT, key2 INT, row1 INT, row2 INT);
            """)
        pending.reserveCapacity(Self.batch)
    }

    /// Stores a row: its position, the columns of its key, and its content.
    func add(
        _ row: borrowing Statement, _ side: Side, at place: Int64, key: Range<Int32>, content: Range<Int32>
    ) throws {
        pending.append(
            Stray(
                // If a row has no key, its position is used as the key.
                side: side, place: place, key: key.isEmpty ? (place, 0) : try Self.digest(of: row, key),
                content: try Self.digest(of: row, content)))
        if pending.count == Self.batch { try flush() }
    }

    private func flush() throws {
        try store.transaction(.deferred) {
            try store.withStatement("INSERT INTO temp.stray VALUES (?1, ?2, ?3, ?4, ?5, ?6)") { insert in
                for stray in pending {
                    try insert.bind(stray.side.rawValue, at: 1)
                    try insert.bind(stray.place, at: 2)
                    try insert.bind(stray.key.0, at: 3)
                    try insert.bind(stray.key.1, at: 4)
                    try insert.bind(stray.content.0, at: 5)
                    try insert.bind(stray.content.1, at: 6)
                    try insert.run()
                    insert.reset()
                }
            }
        }
        pending.removeAll(keepingCapacity: true)
    }

    private static func digest(of row: borrowing Statement, _ columns: Range<Int32>) throws -> (Int64, Int64) {
        func half(_ salt: UInt8) throws -> Int64 {
            var hasher = Hasher()
            hasher.combine(salt)
            try row.hash(columns, into: &hasher)
            return Int64(hasher.finalize())
        }
        return (try half(1), try half(2))
    }

    /// Finds the counterparts, and counts the rows that have none or a changed one.
    func resolve(_ match: RowMatch, _ old: Connection, _ new: Connection, _ tally: inout RowTally) throws {
        try flush()
        // Equal rows cancel each other out, one for one: among rows with the same content, the first of each side, then the
        // second, and so on.
        try store.execute(
            """
            CREATE TEMP TABLE rest AS SELECT side, place, key1, key2 FROM (
                SELECT *, row_number() OVER (PARTITION BY row1, row2, side ORDER BY place) AS number FROM temp.stray)
            GROUP BY row1, row2, number HAVING count(*) = 1;
            DROP TABLE temp.stray;
            """)
        // The remaining rows are matched by their key. If the two tables have no common order, the remaining rows have no
        // counterpart.
        let pairs =
            match.walk == .none
            ? "SELECT CASE side WHEN 0 THEN place END, CASE side WHEN 1 THEN place END FROM temp.rest ORDER BY place"
            : """
            SELECT max(CASE side WHEN 0 THEN place END) AS was, max(CASE side WHEN 1 THEN place END) AS now FROM (
                SELECT *, row_number() OVER (PARTITION BY key1, key2, side ORDER BY place) AS number FROM temp.rest)
            GROUP BY key1, key2, number ORDER BY coalesce(was, now)
            """
        try store.withStatement(pairs) { pair in
            try old.withStatement(match.oldLookup) { old in
                try new.withStatement(match.newLookup) { new in
                    while try pair.step() { try record(pair, old, new, match.shown, &tally) }
                }
            }
        }
    }

    /// Records a pair of rows, or a single unmatched row.
    private func record(
        _ pair: borrowing Statement, _ old: borrowing Statement, _ new: borrowing Statement, _ shown: Range<Int32>,
        _ tally: inout RowTally
    ) throws {
        let kind: RowSample.Kind = pair.isNull(1) ? .removed : pair.isNull(0) ? .added : .changed
        guard kind == .changed || tally.wantsSample(kind) else {
            tally.count(kind)
            return
        }
        let isFound = try (kind == .added || old.find(pair.int64(0))) && (kind == .removed || new.find(pair.int64(1)))
        guard isFound else {
            throw MoultError(
                .diff, what: "cannot compare the rows", why: "a row disappeared during the comparison",
                now: "Try again when no program is writing to the database.")
        }
        try tally.record(kind, old, new, shown)
    }
}
