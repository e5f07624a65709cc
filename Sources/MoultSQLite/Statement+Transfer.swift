import CSQLite
import MoultLibc

/// A row's identity as a short digest. Every process seeds the hash at random, and the digest has 128 bits, so an attacker
/// cannot construct two keys with the same digest.
package struct KeyDigest: Hashable, Comparable {
    private let first: Int
    private let second: Int

    package init(
        of row: borrowing Statement, _ columns: some Sequence<Int32>, _ encoding: DatabaseHeader.TextEncoding? = nil
    )
        throws
    {
        func half(_ salt: UInt8) throws -> Int {
            var hasher = Hasher()
            hasher.combine(salt)
            for column in columns { try row.hash(column, into: &hasher, encoding) }
            return hasher.finalize()
        }
        (first, second, rowID) = (try half(1), try half(2), nil)
    }

    package var words: (Int64, Int64) { rowID.map { (Int64($0), 0) } ?? (Int64(first), Int64(second)) }

    /// The rowid, which needs no hash; nil for the digest of values.
    package let rowID: Int?

    package init(rowID: Int64) { (first, second, self.rowID) = (0, 0, Int(rowID)) }

    package static func < (one: KeyDigest, two: KeyDigest) -> Bool {
        (one.first, one.second, one.rowID ?? 0) < (two.first, two.second, two.rowID ?? 0)
    }
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

    /// Returns whether two columns store the same value: storage class and bytes. Text of databases with different encoding is
    /// compared in both encoding, because either conversion may lose invalid bytes.
    package func stores(
        _ column: Int32, as other: borrowing Statement, _ otherColumn: Int32, _ encoding: DatabaseHeader.TextEncoding?
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
        case SQLITE_TEXT where encoding?.isUTF16 == true: return try text16(column) == other.text16(otherColumn)
        case SQLITE_TEXT where encoding == nil:
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
    package var encoding: String {
        get throws { try scalar("PRAGMA main.encoding")?.textOrEmpty ?? "" }
    }
    package var isUTF16: Bool { get throws { try encoding != "UTF-8" } }

    /// Returns the text encoding of two databases that are compared; nil if they have different ones.
    package static func commonEncoding(_ one: Connection, _ other: Connection) throws -> DatabaseHeader.TextEncoding? {
        let name = try one.encoding
        guard try name == other.encoding else { return nil }
        return DatabaseHeader.TextEncoding.allCases.first { $0.description == name }
    }
}

/// Compares the current rows of two statements in place, without copies, for scans of whole tables.
extension Statement {
    /// Returns whether the rows have the same values: storage classes and bytes.
    package func hasValues(of other: borrowing Statement, _ encoding: DatabaseHeader.TextEncoding?) throws -> Bool {
        for column in 0..<columnCount where try !stores(column, as: other, column, encoding) { return false }
        return true
    }

    /// Compares these columns of this row with those of the other row, in SQLite's order with the collation BINARY. Returns a negative
    /// number if this row sorts first, a positive one if the other does, 0 if neither does.
    package func order(
        _ columns: [Int32], against other: borrowing Statement, _ otherColumns: [Int32],
        _ encoding: DatabaseHeader.TextEncoding?
    ) throws -> Int {
        for (column, otherColumn) in zip(columns, otherColumns) {
            let order = try order(column, other, otherColumn, encoding)
            if order != 0 { return order }
        }
        return 0
    }

    /// Compares two columns. NULL sorts before numbers, numbers before text, text before blobs.
    private func order(
        _ column: Int32, _ other: borrowing Statement, _ otherColumn: Int32, _ encoding: DatabaseHeader.TextEncoding?
    ) throws -> Int {
        let type = sqlite3_column_type(pointer, column)
        let otherType = sqlite3_column_type(other.pointer, otherColumn)
        let rank = Self.rank(type) - Self.rank(otherType)
        if rank != 0 { return rank }
        switch (type, otherType) {
        case (SQLITE_INTEGER, SQLITE_INTEGER):
            return Self.order(sqlite3_column_int64(pointer, column), sqlite3_column_int64(other.pointer, otherColumn))
        case (SQLITE_FLOAT, SQLITE_FLOAT):
            return Self.order(sqlite3_column_double(pointer, column), sqlite3_column_double(other.pointer, otherColumn))
        case (SQLITE_INTEGER, SQLITE_FLOAT):
            return Self.order(sqlite3_column_int64(pointer, column), sqlite3_column_double(other.pointer, otherColumn))
        case (SQLITE_FLOAT, SQLITE_INTEGER):
            return -Self.order(sqlite3_column_int64(other.pointer, otherColumn), sqlite3_column_double(pointer, column))
        case (SQLITE_NULL, _): return 0
        case (SQLITE_TEXT, _) where encoding?.isUTF16 == true:
            // In these databases, BINARY compares the bytes as stored.
            let (one, two) = (try text16(column), try other.text16(otherColumn))
            for (a, b) in zip(one, two) where a != b {
                return encoding == .utf16BigEndian ? Self.order(a, b) : Self.order(a.byteSwapped, b.byteSwapped)
            }
            return one.count - two.count
        default:
            let (one, two) = (try bytes(column, type), try other.bytes(otherColumn, otherType))
            let order = Self.order(one, two, count: min(one.count, two.count))
            return order != 0 ? order : one.count - two.count
        }
    }

    /// Feeds a value with its storage class to the hasher, so that equal stored values have equal hashes.
    package func hash(_ column: Int32, into hasher: inout Hasher, _ encoding: DatabaseHeader.TextEncoding?) throws {
        let type = sqlite3_column_type(pointer, column)
        hasher.combine(type)
        switch type {
        case SQLITE_INTEGER: hasher.combine(sqlite3_column_int64(pointer, column))
        case SQLITE_FLOAT: hasher.combine(sqlite3_column_double(pointer, column))
        case SQLITE_NULL: break
        case SQLITE_TEXT where encoding?.isUTF16 == true: hasher.combine(try text16(column))
        default:
            let bytes = try bytes(column, type)
            // The length distinguishes ("ab", "c") from ("a", "bc").
            hasher.combine(bytes.count)
            hasher.combine(bytes: bytes)
        }
    }

    /// Returns the bytes of a text, as UTF-8 regardless of the database's encoding, or of a blob.
    package func bytes(_ column: Int32, _ type: Int32) throws -> UnsafeRawBufferPointer {
        let start =
            type == SQLITE_TEXT
            ? UnsafeRawPointer(sqlite3_column_text(pointer, column)) : sqlite3_column_blob(pointer, column)
        let count = Int(sqlite3_column_bytes(pointer, column))
        guard start != nil || count == 0 else { throw failure(SQLITE_NOMEM) }
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    package static func order(_ one: UnsafeRawBufferPointer, _ two: UnsafeRawBufferPointer, count: Int) -> Int {
        guard let one = one.baseAddress, let two = two.baseAddress else { return 0 }
        return Int(memcmp(one, two, count))
    }

    private static func rank(_ type: Int32) -> Int {
        switch type {
        case SQLITE_NULL: 0
        case SQLITE_INTEGER, SQLITE_FLOAT: 1
        case SQLITE_TEXT: 2
        default: 3
        }
    }

    package static func order<Number: Comparable>(_ one: Number, _ two: Number) -> Int {
        one < two ? -1 : one > two ? 1 : 0
    }

    /// Compares an integer and a real by their exact values: not every integer can be represented as a Double.
    package static func order(_ integer: Int64, _ real: Double) -> Int {
        if real >= 0x1p63 { return -1 }
        if real < -0x1p63 { return 1 }
        let whole = order(integer, Int64(real))
        // The type is explicit, because with a literal Swift would choose this function and recurse forever.
        let fraction: (Double, Double) = (0, real - real.rounded(.towardZero))
        return whole != 0 ? whole : order(fraction.0, fraction.1)
    }
}
