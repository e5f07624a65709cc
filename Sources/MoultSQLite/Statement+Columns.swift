import CSQLite

/// The types in which SQLite stores a value.
package enum StorageClass: Int32, Sendable {
    case integer = 1
    case real = 2
    case text = 3
    case blob = 4
    case null = 5
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

    /// Returns the current row.
    package func row() throws -> [Value] {
        try (0..<columnCount).map { try value($0) }
    }
}
