import CSQLite
import MoultBasics
import MoultFiles

/// Looks up each row of a table in the same table of another database.
///
/// Rows are looked up by rowid if both tables have one, otherwise by primary key. A row that differs from the one with its
/// rowid is looked up by primary key as well. Where the files allow it, records are compared as bytes, which is many times
/// faster than reading values. Both connections must be in a transaction.
final class RowSearch {
    /// One side of the comparison: a table and its connection.
    struct Side {
        let layout: TableLayout
        let connection: Connection
        let isUTF16: Bool
        private let roots: RootPages?

        /// `roots` are the root pages of the connection's database, for callers that process many of its tables.
        init(_ layout: TableLayout, _ connection: Connection, _ roots: RootPages? = nil) throws {
            (self.layout, self.connection, self.roots) = (layout, connection, roots)
            isUTF16 = try connection.isUTF16
        }

        /// Selects the rowid or NULL, followed by all stored columns.
        fileprivate var selectSQL: String {
            let columns = [layout.rowIDName ?? "NULL"] + layout.columnsSQL
            return "SELECT \(columns.joined(separator: ", ")) FROM \(layout.rows.sql)"
        }

        /// Selects the same columns, but may use an index to look up a key other than the rowid.
        fileprivate var lookUpSQL: String { selectSQL.replacing(layout.rows.sql, with: layout.sql) }

        fileprivate var rootPage: Int64 {
            get throws {
                // A virtual table has no pages of its own.
                guard let page = try (roots ?? RootPages(of: connection))[layout.name] else {
                    throw RecordCursor.Unreadable()
                }
                return page
            }
        }
    }

    /// Receives a row that has no equal row, and, if `isThere`, the row with the same key in the other table. Stored columns
    /// begin at 1 in both.
    typealias Handler = (_ row: borrowing Statement, _ other: borrowing Statement, _ isThere: Bool) throws -> Void

    let pairs: [(row: Int, other: Int)]
    private let side: Side
    private let otherSide: Side
    private let encodingsDiffer: Bool
    /// Selects the row of this side with a given rowid.
    private let row: Statement
    /// Select the row of the other side with a given rowid, or with a given primary key.
    private let otherByRowID: Statement
    private let otherByKey: Statement
    /// The columns of a row that contain the other table's primary key; empty if that is the rowid or not in the row.
    private let keyColumns: [Int32]
    private let haveRowIDs: Bool
    /// Whether one of the tables is stored in an order that only the app knows.
    private let needsStandIns: Bool

    /// `pairs` are the positions of columns whose values must be equal.
    init(_ side: Side, in other: Side, pairs: [(row: Int, other: Int)]) throws {
        (self.side, otherSide, self.pairs) = (side, other, pairs)
        encodingsDiffer = try side.connection.encoding != other.connection.encoding
        let places = Dictionary(pairs.map { ($0.other, Int32($0.row + 1)) }) { first, _ in first }
        let key = other.layout.rowIDColumn == nil ? other.layout.primaryKey : []
        let columns = key.compactMap { places[$0] }
        keyColumns = columns.count == key.count ? columns : []
        haveRowIDs = side.layout.rowIDName != nil && other.layout.rowIDName != nil
        let none = "SELECT NULL WHERE ?1 IS NULL AND 0"
        func byRowID(_ side: Side) throws -> Statement {
            try side.connection.statement(side.layout.rowIDName.map { "\(side.selectSQL) WHERE \($0) = ?1" } ?? none)
        }
        row = try byRowID(side)
        otherByRowID = try byRowID(other)
        let conditions = key.enumerated().map {
            "\(quoteIdentifier(other.layout.columns[$1].name)) IS ?\($0 + 1)"
        }
        needsStandIns = try side.connection.needsStandIns(side.layout) || other.connection.needsStandIns(other.layout)
        // A key in an order that only the app knows cannot be looked up.
        otherByKey = try other.connection.statement(
            keyColumns.isEmpty || needsStandIns
                ? none : "\(other.lookUpSQL) WHERE \(conditions.joined(separator: " AND "))")
    }

    func forEachUnmatched(_ handle: Handler) throws {
        guard haveRowIDs else { return try byKeys(handle) }
        var last: Int64?
        if try canReadRecords {
            do { return try byRecords(&last, handle) } catch  where error is RecordCursor.Unreadable {
                // SQLite reads the remaining rows, and reports any fault.
            }
        }
        try byRowIDs(after: last, handle)
    }

    /// Whether rows with the same bytes have the same values.
    private var canReadRecords: Bool {
        get throws {
            let (one, two) = (side.layout, otherSide.layout)
            guard !encodingsDiffer, one.rowIDColumn == two.rowIDColumn, one.generated.isEmpty, two.generated.isEmpty,
                pairs.count == min(one.columns.count, two.columns.count),
                pairs.allSatisfy({ pair in
                    let (a, b) = (one.columns[pair.row], two.columns[pair.other])
                    // A record may end before columns that were added later, which then have their default.
                    return pair.row == pair.other && SQLName(a.type) == SQLName(b.type)
                        && a.defaultValue == b.defaultValue
                })
            else { return false }
            return try side.connection.isWholeFile && otherSide.connection.isWholeFile
        }
    }

    private func byRecords(_ last: inout Int64?, _ handle: Handler) throws {
        var rows = try RecordCursor(side.connection, rootPage: side.rootPage)
        var others = try RecordCursor(otherSide.connection, rootPage: otherSide.rootPage)
        var hasOther = try others.next()
        while try rows.next() {
            while hasOther, others.rowID < rows.rowID { hasOther = try others.next() }
            let isSame =
                try hasOther && others.rowID == rows.rowID
                && (rows.skipLeaf(ifSameAs: &others) || rows.isSame(as: others))
            if !isSame { try compareByRowID(rows.rowID, handle) }
            last = rows.rowID
        }
    }

    private func compareByRowID(_ rowID: Int64, _ handle: Handler) throws {
        defer {
            row.reset()
            otherByRowID.reset()
        }
        try row.bind(rowID, at: 1)
        guard try row.step() else { throw RecordCursor.Unreadable() }
        try otherByRowID.bind(rowID, at: 1)
        try compare(row, otherByRowID, isThere: try otherByRowID.step(), handle)
    }

    private func byRowIDs(after last: Int64?, _ handle: Handler) throws {
        func sql(_ side: Side) -> String {
            let rowID = side.layout.rowIDName ?? ""
            return "\(side.selectSQL)\(last.map { " WHERE \(rowID) > \($0)" } ?? "") ORDER BY \(rowID)"
        }
        try side.connection.withStatement(sql(side)) { row in
            try otherSide.connection.withStatement(sql(otherSide)) { other in
                var hasOther = try other.step()
                while try row.step() {
                    while hasOther, other.int64(0) < row.int64(0) { hasOther = try other.step() }
                    try compare(row, other, isThere: hasOther && other.int64(0) == row.int64(0), handle)
                }
            }
        }
    }

    private func byKeys(_ handle: Handler) throws {
        if !keyColumns.isEmpty, !side.isUTF16, !otherSide.isUTF16 {
            guard needsStandIns else { return try byOrderedKeys(handle) }
            return try side.connection.readingWithStandIns {
                try otherSide.connection.readingWithStandIns { try byOrderedKeys(handle) }
            }
        }
        try side.connection.withStatement(side.selectSQL) { row in
            while try row.step() { try compareByKey(row, handle) }
        }
    }

    /// Reads both tables side by side in byte order of the key, so that equal rows need no look-up.
    private func byOrderedKeys(_ handle: Handler) throws {
        func sql(_ side: Side, _ columns: [Int32]) -> String {
            let key = columns.map { "\(side.layout.columnsSQL[Int($0) - 1]) COLLATE BINARY" }
            return "\(side.selectSQL) ORDER BY \(key.joined(separator: ", "))"
        }
        let otherColumns = otherSide.layout.primaryKey.map { Int32($0 + 1) }
        try side.connection.withStatement(sql(side, keyColumns)) { row in
            try otherSide.connection.withStatement(sql(otherSide, otherColumns)) { other in
                var hasOther = try other.step()
                while try row.step() {
                    var order = 1
                    while hasOther {
                        order = try row.order(keyColumns, against: other, otherColumns)
                        if order <= 0 { break }
                        hasOther = try other.step()
                    }
                    if hasOther, order == 0, try isEqual(row, other) { continue }
                    // Under the key's own collation, the row may match a different row.
                    try compareByKey(row, handle)
                }
            }
        }
    }

    private func compare(
        _ row: borrowing Statement, _ other: borrowing Statement, isThere: Bool, _ handle: Handler
    ) throws {
        if isThere, try isEqual(row, other) { return }
        // A key with a NULL identifies no row.
        if keyColumns.isEmpty || keyColumns.contains(where: { row.isNull($0) }) {
            return try handle(row, other, isThere)
        }
        try compareByKey(row, handle)
    }

    private func compareByKey(_ row: borrowing Statement, _ handle: Handler) throws {
        defer { otherByKey.reset() }
        for (index, column) in keyColumns.enumerated() { try otherByKey.bind(row, column, at: Int32(index + 1)) }
        let isThere = try !keyColumns.isEmpty && otherByKey.step()
        if isThere, try isEqual(row, otherByKey) { return }
        try handle(row, otherByKey, isThere)
    }

    private func isEqual(_ row: borrowing Statement, _ other: borrowing Statement) throws -> Bool {
        for pair in pairs where try !isSame(pair, row, other) { return false }
        return true
    }

    /// Returns whether both rows store the same value in a pair of columns.
    func isSame(
        _ pair: (row: Int, other: Int), _ row: borrowing Statement, _ other: borrowing Statement
    ) throws -> Bool {
        try row.stores(Int32(pair.row + 1), as: other, Int32(pair.other + 1), encodingsDiffer: encodingsDiffer)
    }

    /// Returns the number of rows that have no equal row in the other table.
    func countUnmatched() throws -> Int {
        var count = 0
        try forEachUnmatched { _, _, _ in count += 1 }
        return count
    }
}

extension Connection {
    /// Whether the file alone contains everything that this connection reads: nothing is in a WAL, or waits to be written.
    /// Valid only during a read transaction.
    var isWholeFile: Bool {
        get throws {
            // The transaction takes its lock only when a statement reads.
            _ = try int("SELECT count(*) FROM main.sqlite_schema")
            guard try isInTransaction, try sqlite3_txn_state(handle, "main") == SQLITE_TXN_READ,
                let name = try sqlite3_db_filename(handle, "main"), name.pointee != 0
            else { return false }
            guard try header().isWAL else { return true }
            return try Sidecars.of(String(cString: name)).wal.map { $0.facts.size == 0 } ?? true
        }
    }
}
