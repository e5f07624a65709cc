import CSQLite
import MoultBasics

/// A prepared statement, which is finalized when this value is destroyed. Parameters count from 1 and columns from 0, as in
/// SQLite.
package struct Statement: ~Copyable {
    let pointer: OpaquePointer
    package let connection: Connection
    /// The text after this statement in the prepared text.
    package let tail: Substring
    /// Whether the statement ends a transaction, which takes as long as the disk needs, and evaluates nothing.
    private let endsTransaction: Bool

    init(pointer: OpaquePointer, connection: Connection, tail: Substring) {
        (self.pointer, self.connection, self.tail) = (pointer, connection, tail)
        let sql = sqlite3_sql(pointer).map { String(cString: $0) } ?? ""
        endsTransaction = ["COMMIT", "ROLLBACK", "RELEASE"].contains { sql.hasBytePrefix($0) }
    }

    deinit {
        // The result is that of the last step, which was already reported.
        sqlite3_finalize(pointer)
    }

    /// Steps to the next row; returns false at the end.
    package func step() throws -> Bool {
        switch endsTransaction ? sqlite3_step(pointer) : connection.timed({ sqlite3_step(pointer) }) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw failure(code)
        }
    }

    package func run() throws {
        while try step() {}
    }

    /// Resets the statement so that it can run again; bound values stay.
    package func reset() {
        // The result is that of the last step, which was already reported.
        sqlite3_reset(pointer)
    }

    package var sql: String { sqlite3_sql(pointer).map { String(cString: $0) } ?? "" }

    /// Whether the statement makes no direct change to a database file.
    package var isReadOnly: Bool { sqlite3_stmt_readonly(pointer) != 0 }

    func failure(_ code: Int32) -> MoultError {
        connection.failure(code, doing: "run a statement on \(connection.path)", sql: sql)
    }
}

package enum StorageClass: Int32, Sendable {
    case integer = 1
    case real = 2
    case text = 3
    case blob = 4
    case null = 5
}

package enum Value: Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
}

extension Value: Equatable {
    /// Texts are equal only if their bytes are equal: Swift would treat the two encodings of é as equal.
    package static func == (one: Value, other: Value) -> Bool {
        switch (one, other) {
        case (.null, .null): true
        case (.integer(let one), .integer(let other)): one == other
        case (.real(let one), .real(let other)): one == other
        case (.text(let one), .text(let other)): one.hasBytes(of: other)
        case (.blob(let one), .blob(let other)): one == other
        default: false
        }
    }
}

extension Value: CustomStringConvertible {
    package var description: String { quoteLiteral(self) }
}

extension Statement {
    package var columnCount: Int32 { sqlite3_column_count(pointer) }

    package func columnName(_ column: Int32) -> String {
        sqlite3_column_name(pointer, column).map { String(cString: $0) } ?? ""
    }

    package var columnNames: [String] { (0..<columnCount).map { columnName($0) } }

    /// Returns the storage class of a column in the current row; NULL for a column that does not exist.
    package func storage(_ column: Int32) -> StorageClass {
        StorageClass(rawValue: sqlite3_column_type(pointer, column)) ?? .null
    }

    package func isNull(_ column: Int32) -> Bool { sqlite3_column_type(pointer, column) == SQLITE_NULL }
    package func int64(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }
    package func double(_ column: Int32) -> Double { sqlite3_column_double(pointer, column) }

    /// Passes the column's text as UTF-8 to the closure, without a copy; the bytes are valid only in the closure.
    package func withText<R>(_ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R {
        guard let start = sqlite3_column_text(pointer, column) else {
            if !isNull(column) { throw failure(SQLITE_NOMEM) }
            return try body(UnsafeRawBufferPointer(start: nil, count: 0))
        }
        return try body(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
    }

    /// Passes the column's bytes to the closure, without a copy; they are valid only in the closure.
    package func withBlob<R>(_ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R {
        guard let start = sqlite3_column_blob(pointer, column) else {
            // SQLite returns no address both for an empty blob and after a failed allocation.
            if sqlite3_errcode(sqlite3_db_handle(pointer)) == SQLITE_NOMEM { throw failure(SQLITE_NOMEM) }
            return try body(UnsafeRawBufferPointer(start: nil, count: 0))
        }
        return try body(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
    }

    /// Returns the column as text. Invalid UTF-8 is replaced, so use `withText` for comparisons where that matters.
    package func text(_ column: Int32) throws -> String {
        try withText(column) { String(decoding: $0, as: UTF8.self) }
    }

    package func blob(_ column: Int32) throws -> [UInt8] {
        try withBlob(column) { Array($0) }
    }

    package func value(_ column: Int32) throws -> Value {
        switch storage(column) {
        case .integer: .integer(int64(column))
        case .real: .real(double(column))
        case .text: .text(try text(column))
        case .blob: .blob(try blob(column))
        case .null: .null
        }
    }

    package func row() throws -> [Value] {
        try (0..<columnCount).map { try value($0) }
    }
}

extension Statement {
    package var parameterCount: Int32 { sqlite3_bind_parameter_count(pointer) }

    package func bind(_ values: [Value]) throws {
        guard values.count == Int(parameterCount) else {
            throw MoultError(
                .databaseRequest, what: "cannot run a statement on \(connection.path)",
                why: "the statement has \(parameterCount) parameters, and \(values.count) values were given: \(sql)")
        }
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
    }

    /// Binds one parameter to a copy of the value.
    package func bind(_ value: Value, at index: Int32) throws {
        switch value {
        case .null: try bindNull(at: index)
        case .integer(let number): try bind(number, at: index)
        case .real(let number): try bind(number, at: index)
        case .text(var text):
            try text.withUTF8 { try bindText(UnsafeRawBufferPointer($0), at: index, moult_sqlite_transient()) }
        case .blob(let bytes):
            try bytes.withUnsafeBytes { bytes in
                guard let start = bytes.baseAddress, !bytes.isEmpty else {
                    return try check(sqlite3_bind_zeroblob(pointer, index, 0))
                }
                try connection.allowValues(of: bytes.count)
                try check(sqlite3_bind_blob64(pointer, index, start, UInt64(bytes.count), moult_sqlite_transient()))
            }
        }
    }

    package func bind(_ number: Int64, at index: Int32) throws { try check(sqlite3_bind_int64(pointer, index, number)) }

    package func bind(_ number: Double, at index: Int32) throws {
        try check(sqlite3_bind_double(pointer, index, number))
    }

    package func bindNull(at index: Int32) throws { try check(sqlite3_bind_null(pointer, index)) }

    /// Binds UTF-8 text without copying it. The bytes must stay valid until the parameter is bound again, the bindings are
    /// cleared, or the statement ends.
    package func bindText(borrowing bytes: UnsafeRawBufferPointer, at index: Int32) throws {
        try bindText(bytes, at: index, nil)
    }

    /// Sets all parameters to NULL, so that SQLite no longer refers to borrowed bytes.
    package func clearBindings() throws { try check(sqlite3_clear_bindings(pointer)) }

    private func bindText(
        _ bytes: UnsafeRawBufferPointer, at index: Int32, _ lifetime: sqlite3_destructor_type?
    ) throws {
        guard let start = bytes.baseAddress else {
            // A null pointer would bind NULL instead of empty text.
            try check(sqlite3_bind_text(pointer, index, "", 0, moult_sqlite_transient()))
            return
        }
        try connection.allowValues(of: bytes.count)
        try check(
            sqlite3_bind_text64(
                pointer, index, start.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), lifetime,
                UInt8(SQLITE_UTF8)))
    }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw failure(code) }
    }

    /// Binds all columns of another statement's current row, in order.
    func bind(_ row: borrowing Statement) throws {
        for column in 0..<row.columnCount { try bind(row, column, at: column + 1) }
    }
}
