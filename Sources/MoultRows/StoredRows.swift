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
        let condition = RowStatement.condition(identity)
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
        try read.bind(row, columns)
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

    /// Returns the identity with which a row begins.
    func key(_ row: borrowing Statement) throws -> Key {
        if !layout.isWithoutRowID { return .rowID(row.int64(0)) }
        var values: [OwnedValue] = []
        for place in 0..<first { values.append(try OwnedValue(row, place)) }
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

/// A statement whose parameters are columns of another row.
final class RowStatement {
    private let statement: Statement
    private let columns: [Int32]

    /// `sql` is a statement up to its condition. It is about the rows in which the expressions `names` have the values of `columns` in
    /// the other row; a NULL finds a NULL.
    init(_ sql: String, where names: [String], are columns: [Int32], in connection: Connection) throws {
        self.columns = columns
        statement = try connection.statement(names.isEmpty ? sql : "\(sql) WHERE \(Self.condition(names))")
    }

    init(_ statement: consuming Statement, _ columns: [Int32]) {
        self.statement = statement
        self.columns = columns
    }

    static func condition(_ names: [String]) -> String {
        names.enumerated().map { "\($1) IS ?\($0 + 1)" }.joined(separator: " AND ")
    }

    /// Passes the rows that are found to the body until it returns a result.
    func first<R>(like row: borrowing Statement, _ body: (borrowing Statement) throws -> R?) throws -> R? {
        defer { statement.reset() }
        try statement.bind(row, columns)
        while try statement.step() { if let result = try body(statement) { return result } }
        return nil
    }

    func contains(_ row: borrowing Statement) throws -> Bool { try first(like: row) { _ in true } ?? false }

    func run(like row: borrowing Statement) throws { _ = try first(like: row) { _ in nil as Never? } }
}

extension TableLayout {
    /// The columns that identify a row whose rowid or NULL comes first, before all stored columns.
    var identityPlaces: [Int32] { isWithoutRowID ? primaryKey.map { Int32($0 + 1) } : [0] }
}

extension Statement {
    /// Binds the first parameters to these columns of another statement's current row.
    func bind(_ row: borrowing Statement, _ columns: some Sequence<Int32>) throws {
        for (index, column) in columns.enumerated() { try bind(row, column, at: Int32(index + 1)) }
    }
}
