import MoultBasics

/// How the rows of a table are matched with those of the other database, and the statements that read both tables.
package struct RowMatch {
    package enum Walk: Equatable {
        /// Ordered by a key that each row keeps: rows with the same key are the same row, before and after.
        case key(columns: Int32)
        /// Ordered by the rowid, which is such a key.
        case rowIDKey
        /// Ordered by the rowid, which may change: rows without a match at the same rowid are matched by content, then by a key
        /// of this many columns, or without a key by the rowid.
        case position(keyColumns: Int32)
        /// Unordered, because the two tables have no common order: rows are matched by their content.
        case none
    }

    /// What identifies a row.
    package enum Key: Sendable, Equatable {
        case primaryKey([String])
        case rowid
        /// The whole content.
        case content
    }

    package let walk: Walk
    package let key: Key
    /// The columns to display, with the key first.
    package private(set) var columns: [String]
    package private(set) var keyColumns: Int
    /// The number of columns in the statements before those to display: 1 for a rowid that only shows the position of a row,
    /// otherwise 0.
    let hidden: Int32
    private let old: Side
    private let new: Side

    private struct Side {
        let table: String
        /// The columns in SQL.
        let columns: [String]
        let order: [String]

        func sql(where condition: String = "") -> String {
            var sql = "SELECT \(columns.joined(separator: ", ")) FROM main.\(quoteIdentifier(table))"
            if !condition.isEmpty { sql += " WHERE \(condition)" }
            if !order.isEmpty { sql += " ORDER BY \(order.joined(separator: ", "))" }
            return sql
        }

        /// The statement that finds a row again by its position: its rowid, or the number of rows before it.
        var lookup: String { order.isEmpty ? sql() + " LIMIT 1 OFFSET ?1" : sql(where: "\(order[0]) = ?1") }
    }

    /// The maximum number of columns in a statement, the same as in a table: if a table uses all of them, the statement has no
    /// space for the rowid.
    static let maxColumns = 2000

    package enum Means {
        /// The rowid if both tables have one, otherwise the primary key, otherwise the whole row.
        case best
        /// The primary key even if both have a rowid; no row may have a NULL in the key.
        case key
        case content
    }

    package init(old: TableFacts, new: TableFacts, areUTF8: Bool, by means: Means = .best) {
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
            isKey || shared.count < Self.maxColumns
        {
            walk = isKey ? .rowIDKey : .position(keyColumns: Int32(key.count))
            self.key = key.isEmpty ? .rowid : .primaryKey(key)
            if key.isEmpty { (columns, keyColumns) = (["rowid"] + shared, 1) }
            hidden = isKey || key.isEmpty ? 0 : 1
            self.old = side(old, oldColumns, rowID: !isKey, order: [oldRowID])
            self.new = side(new, shared, rowID: !isKey, order: [newRowID])
        } else if !key.isEmpty, areUTF8, means != .content {
            (walk, self.key, hidden) = (.key(columns: Int32(key.count)), .primaryKey(key), 0)
            // The walk compares bytes, regardless of the collation of the key.
            let order = key.map { "\(quoteIdentifier($0)) COLLATE BINARY" }
            self.old = side(old, oldColumns, rowID: false, order: order)
            self.new = side(new, shared, rowID: false, order: order)
        } else {
            (walk, self.key, hidden) = (.none, .content, 0)
            keyColumns = 0
            self.old = side(old, oldColumns, rowID: false, order: [])
            self.new = side(new, shared, rowID: false, order: [])
        }
    }

    package var oldSQL: String { old.sql() }
    package var newSQL: String { new.sql() }
    package var oldLookup: String { old.lookup }
    package var newLookup: String { new.lookup }

    /// The number of columns by which the statements are ordered.
    package var orderColumns: Int32 {
        switch walk {
        case .key(let columns): columns
        case .rowIDKey, .position: 1
        case .none: 0
        }
    }
    /// Whether the first column of the statements is the rowid.
    package var isByRowID: Bool {
        switch walk {
        case .rowIDKey, .position: true
        case .key, .none: false
        }
    }
    /// The columns of the statements that are displayed.
    package var shown: Range<Int32> { hidden..<(hidden + Int32(columns.count)) }
    /// The columns of the statements that have the content of a row.
    package var content: Range<Int32> { (walk == .position(keyColumns: 0) ? 1 : hidden)..<shown.upperBound }
}
