import MoultBasics
import MoultSQLite

/// Reads and deletes single rows of a table by their identity.
final class StoredRows {
    /// The key of a row: its rowid, or the primary key of a table WITHOUT ROWID.
    enum Key {
        case rowID(Int64)
        case primaryKey([OwnedValue])
    }

    let layout: TableLayout
    /// Selects a row's identity, then all stored columns.
    private let read: Statement
    private let remove: Statement
    private let isUTF16: Bool
    /// The first of the stored columns in `read`.
    let first: Int32

    init(_ layout: TableLayout, _ connection: Connection) throws {
        self.layout = layout
        let identity = layout.identity
        guard !identity.isEmpty else {
            throw MoultError(
                .selection, .refused, what: "cannot carry over the rows of table \(layout.name)",
                why: "its columns use all three names of the rowid",
                now: "Rename one of the columns oid, _rowid_ and rowid.")
        }
        let condition = identity.enumerated().map { "\($1) IS ?\($0 + 1)" }.joined(separator: " AND ")
        let columns = (identity + layout.columnsSQL).joined(separator: ", ")
        first = Int32(identity.count)
        read = try connection.statement("SELECT \(columns) FROM \(layout.sql) WHERE \(condition)")
        remove = try connection.statement("DELETE FROM \(layout.sql) WHERE \(condition)")
        isUTF16 = try connection.isUTF16
    }

    /// Passes the row with this key to the closure, and returns its result; nil if no such row exists.
    func withRow<R>(_ key: Key, _ body: (borrowing Statement) throws -> R) throws -> R? {
        defer { read.reset() }
        try bind(key, to: read)
        return try read.step() ? body(read) : nil
    }

    /// Passes to the closure the row whose key is in these columns of another row, and returns its result; nil if no such row
    /// exists.
    func withRow<R>(
        keyIn row: borrowing Statement, _ columns: [Int32], _ body: (borrowing Statement) throws -> R
    ) throws -> R? {
        defer { read.reset() }
        for (index, column) in columns.enumerated() { try read.bind(row, column, at: Int32(index + 1)) }
        return try read.step() ? body(read) : nil
    }

    func delete(_ key: Key) throws {
        defer { remove.reset() }
        try bind(key, to: remove)
        try remove.run()
    }

    /// Returns the digest of the identity of a row passed by `withRow`.
    func digest(_ row: borrowing Statement) throws -> KeyDigest {
        layout.isWithoutRowID ? try KeyDigest(of: row, 0..<first) : KeyDigest(rowID: row.int64(0))
    }

    /// Returns the digest of the identity of the row with this key.
    func digest(of key: Key) throws -> KeyDigest {
        if case .rowID(let number) = key { return KeyDigest(rowID: number) }
        return try withRow(key) { try digest($0) } ?? KeyDigest(rowID: 0)
    }

    /// Returns the identity that a row has from the given column on.
    func key(_ row: borrowing Statement, from column: Int32 = 0) throws -> Key {
        if !layout.isWithoutRowID { return .rowID(row.int64(column)) }
        var values: [OwnedValue] = []
        for place in 0..<first { values.append(try OwnedValue(row, column + place)) }
        return .primaryKey(values)
    }

    /// Returns a row passed by `withRow`, as JSON.
    func json(_ row: borrowing Statement) throws -> String {
        try RowJSON.text(row, from: first, layout.columns.map(\.name), isUTF16: isUTF16)
    }

    private func bind(_ key: Key, to statement: borrowing Statement) throws {
        switch key {
        case .rowID(let number): try statement.bind(number, at: 1)
        case .primaryKey(let values):
            for (index, value) in values.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
        }
    }
}
