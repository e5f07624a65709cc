import CSQLite

/// A row's identity as a short digest. Every process seeds the hash at random, and the digest has 128 bits, so an attacker
/// cannot construct two keys with the same digest.
package struct KeyDigest: Hashable, Comparable {
    private let first: Int
    private let second: Int

    package init(of row: borrowing Statement, _ columns: some Sequence<Int32>, _ encodings: TextEncodings = .mixed)
        throws
    {
        func half(_ salt: UInt8) throws -> Int {
            var hasher = Hasher()
            hasher.combine(salt)
            for column in columns { try row.hash(column, into: &hasher, encodings) }
            return hasher.finalize()
        }
        (first, second, rowID) = (try half(1), try half(2), nil)
    }

    /// The digest as two numbers.
    package var words: (Int64, Int64) { rowID.map { (Int64($0), 0) } ?? (Int64(first), Int64(second)) }

    /// The rowid, which needs no hash; nil for the digest of values.
    package let rowID: Int?

    package init(rowID: Int64) { (first, second, self.rowID) = (0, 0, Int(rowID)) }

    /// In an arbitrary order.
    package static func < (one: KeyDigest, two: KeyDigest) -> Bool {
        (one.first, one.second, one.rowID ?? 0) < (two.first, two.second, two.rowID ?? 0)
    }
}

/// The encodings of two databases that are compared.
package enum TextEncodings {
    case utf8, utf16le, utf16be, mixed

    package init(_ one: Connection, _ other: Connection) throws {
        switch (try one.encoding, try other.encoding) {
        case ("UTF-8", "UTF-8"): self = .utf8
        case ("UTF-16le", "UTF-16le"): self = .utf16le
        case ("UTF-16be", "UTF-16be"): self = .utf16be
        default: self = .mixed
        }
    }

    package var areUTF16: Bool { self == .utf16le || self == .utf16be }
}

/// A copy of a value that outlives the row it was read from.
package final class OwnedValue {
    fileprivate let pointer: OpaquePointer

    package init(_ row: borrowing Statement, _ column: Int32) throws {
        guard let copy = sqlite3_value_dup(sqlite3_column_value(row.pointer, column)) else {
            throw row.failure(SQLITE_NOMEM)
        }
        pointer = copy
    }

    deinit { sqlite3_value_free(pointer) }
}

extension Statement {
    /// Binds a parameter to a column of another statement's current row, with its storage class and all its bytes.
    package func bind(_ row: borrowing Statement, _ column: Int32, at index: Int32) throws {
        try connection.allowValues(of: Int(row.connection.valueLimit))
        let code = sqlite3_bind_value(pointer, index, sqlite3_column_value(row.pointer, column))
        guard code == SQLITE_OK else { throw failure(code) }
    }

    package func bind(_ value: OwnedValue, at index: Int32) throws {
        let code = sqlite3_bind_value(pointer, index, value.pointer)
        guard code == SQLITE_OK else { throw failure(code) }
    }

    /// Returns whether two columns store the same value: storage class and bytes. Text of databases with different encodings is
    /// compared in both encodings, because either conversion may lose invalid bytes.
    package func stores(
        _ column: Int32, as other: borrowing Statement, _ otherColumn: Int32, _ encodings: TextEncodings
    ) throws -> Bool {
        let type = sqlite3_column_type(pointer, column)
        guard type == sqlite3_column_type(other.pointer, otherColumn) else { return false }
        switch type {
        case SQLITE_INTEGER:
            return sqlite3_column_int64(pointer, column) == sqlite3_column_int64(other.pointer, otherColumn)
        case SQLITE_FLOAT:
            return sqlite3_column_double(pointer, column).bitPattern
                == sqlite3_column_double(other.pointer, otherColumn).bitPattern
        case SQLITE_NULL: return true
        case SQLITE_TEXT where encodings.areUTF16: return try text16(column) == other.text16(otherColumn)
        case SQLITE_TEXT where encodings == .mixed:
            // Reading a value in the other encoding converts it in place, and a single conversion may lose bytes.
            let (one, two) = (try OwnedValue(self, column), try OwnedValue(other, otherColumn))
            if try text16(one) != other.text16(two) { return false }
        default: break
        }
        let (one, two) = (try bytes(column, type), try other.bytes(otherColumn, type))
        return one.count == two.count && Self.order(one, two, count: one.count) == 0
    }

    private func text16(_ value: OwnedValue) throws -> [UInt16] {
        guard let start = sqlite3_value_text16(value.pointer) else { throw failure(SQLITE_NOMEM) }
        let count = Int(sqlite3_value_bytes16(value.pointer)) / 2
        return Array(UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt16.self), count: count))
    }

    /// Returns the column's text in UTF-16, in this machine's byte order.
    package func text16(_ column: Int32) throws -> [UInt16] {
        guard let start = sqlite3_column_text16(pointer, column) else {
            if !isNull(column) { throw failure(SQLITE_NOMEM) }
            return []
        }
        let count = Int(sqlite3_column_bytes16(pointer, column)) / 2
        return Array(UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt16.self), count: count))
    }
}

extension Connection {
    /// The database's text encoding.
    package var encoding: String {
        get throws { try scalar("PRAGMA main.encoding")?.textOrEmpty ?? "" }
    }
    package var isUTF16: Bool { get throws { try encoding != "UTF-8" } }
}
