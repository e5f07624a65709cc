import MoultBasics
internal import MoultSQLite

/// How the rows of a table find their partners in the other database, and the statements that read both.
struct RowMatch {
    enum Walk: Equatable {
        /// In the order of a key that a row keeps: one key is one row, before and after.
        case key(columns: Int32)
        /// In the order of the rowid, which is such a key.
        case rowIDKey
        /// In the order of the rowid, which a row may lose: rows without an equal there are searched elsewhere, first by
        /// their content, then by a key of so many columns, or without one by the rowid.
        case position(keyColumns: Int32)
        /// Each by itself, because the two have no common order: rows are searched by their content.
        case none
    }

    let walk: Walk
    let method: TableDiff.Method
    /// The displayed form of a row, its key first.
    private(set) var columns: [String]
    private(set) var keyColumns: Int
    /// How many columns of the statements stand before those: the rowid, where it only tells the place of a row.
    let hidden: Int32
    private let old: Side
    private let new: Side

    private struct Side {
        let table: String
        /// As SQL writes them.
        let columns: [String]
        let order: [String]

        func sql(where condition: String = "") -> String {
            var sql = "SELECT \(columns.joined(separator: ", ")) FROM main.\(quoteIdentifier(table))"
            if !condition.isEmpty { sql += " WHERE \(condition)" }
            if !order.isEmpty { sql += " ORDER BY \(order.joined(separator: ", "))" }
            return sql
        }

        /// Finds one row again by its place: its rowid, or how many come before it.
        var lookup: String { order.isEmpty ? sql() + " LIMIT 1 OFFSET ?1" : sql(where: "\(order[0]) = ?1") }
    }

    /// SQLite gives a statement no more columns than a table may have: where a row fills all of them, the rowid has no place.
    static let mostColumns = 2000

    enum Means {
        /// The rowid where both tables have one, otherwise the primary key, otherwise all that a row holds.
        case best
        /// The primary key even if both have a rowid; no row may have NULL in it.
        case key
        case content
    }

    init(old: TableFacts, new: TableFacts, areUTF8: Bool, by means: Means = .best) {
        let oldNames = Dictionary(old.columns.map { (SQLName($0), $0) }) { first, _ in first }
        let key = old.primaryKey.map { SQLName($0) } == new.primaryKey.map { SQLName($0) } ? new.primaryKey : []
        let keyNames = Set(key.map { SQLName($0) })
        let shared =
            key + new.columns.filter { oldNames[SQLName($0)] != nil && !keyNames.contains(SQLName($0)) }
        func side(_ table: TableFacts, _ columns: [String], rowID: Bool, order: [String]) -> Side {
            let place = table.rowIDName.map { rowID ? [$0] : [] } ?? []
            return Side(table: table.name, columns: place + columns.map(quoteIdentifier), order: order)
        }
        let oldColumns = shared.map { oldNames[SQLName($0)] ?? $0 }
        columns = shared
        keyColumns = key.count
        let isKey = !key.isEmpty && old.rowIDColumn != nil && new.rowIDColumn != nil
        if let oldRowID = old.rowIDName, let newRowID = new.rowIDName, means == .best,
            isKey || shared.count < Self.mostColumns
        {
            walk = isKey ? .rowIDKey : .position(keyColumns: Int32(key.count))
            method = key.isEmpty ? .rowid : .primaryKey(key)
            if key.isEmpty { (columns, keyColumns) = (["rowid"] + shared, 1) }
            hidden = isKey || key.isEmpty ? 0 : 1
            self.old = side(old, oldColumns, rowID: !isKey, order: [oldRowID])
            self.new = side(new, shared, rowID: !isKey, order: [newRowID])
        } else if !key.isEmpty, areUTF8, means != .content {
            (walk, method, hidden) = (.key(columns: Int32(key.count)), .primaryKey(key), 0)
            // The walk compares bytes, whatever collation the key has.
            let order = key.map { "\(quoteIdentifier($0)) COLLATE BINARY" }
            self.old = side(old, oldColumns, rowID: false, order: order)
            self.new = side(new, shared, rowID: false, order: order)
        } else {
            (walk, method, hidden) = (.none, .content, 0)
            keyColumns = 0
            self.old = side(old, oldColumns, rowID: false, order: [])
            self.new = side(new, shared, rowID: false, order: [])
        }
    }

    var oldSQL: String { old.sql() }
    var newSQL: String { new.sql() }
    var oldLookup: String { old.lookup }
    var newLookup: String { new.lookup }

    /// How many columns the statements are ordered by.
    var orderColumns: Int32 {
        switch walk {
        case .key(let columns): columns
        case .rowIDKey, .position: 1
        case .none: 0
        }
    }
    /// The first column of the statements is the rowid.
    var isByRowID: Bool {
        switch walk {
        case .rowIDKey, .position: true
        case .key, .none: false
        }
    }
    /// The columns of the statements that are shown.
    var shown: Range<Int32> { hidden..<(hidden + Int32(columns.count)) }
    /// The columns of the statements that hold what a row is made of.
    var content: Range<Int32> { (walk == .position(keyColumns: 0) ? 1 : hidden)..<shown.upperBound }
}
