import CSQLite
import MoultLibc

/// Compares the current rows of two statements in place, without copies, for scans of whole tables.
extension Statement {
    /// Returns whether the rows have the same values: storage classes and bytes.
    package func hasValues(of other: borrowing Statement, _ encodings: TextEncodings) throws -> Bool {
        for column in 0..<columnCount where try !stores(column, as: other, column, encodings) { return false }
        return true
    }

    /// Compares these columns of this row with those of the other row, in SQLite's order with the collation BINARY. Returns a negative
    /// number if this row sorts first, a positive one if the other does, 0 if neither does.
    package func order(
        _ columns: [Int32], against other: borrowing Statement, _ otherColumns: [Int32], _ encodings: TextEncodings
    ) throws -> Int {
        for (column, otherColumn) in zip(columns, otherColumns) {
            let order = try order(column, other, otherColumn, encodings)
            if order != 0 { return order }
        }
        return 0
    }

    /// Compares two columns. NULL sorts before numbers, numbers before text, text before blobs.
    private func order(
        _ column: Int32, _ other: borrowing Statement, _ otherColumn: Int32, _ encodings: TextEncodings
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
        case (SQLITE_TEXT, _) where encodings.areUTF16:
            // In these databases, BINARY compares the bytes as stored.
            let (one, two) = (try text16(column), try other.text16(otherColumn))
            for (a, b) in zip(one, two) where a != b {
                return encodings == .utf16be ? Self.order(a, b) : Self.order(a.byteSwapped, b.byteSwapped)
            }
            return one.count - two.count
        default:
            let (one, two) = (try bytes(column, type), try other.bytes(otherColumn, otherType))
            let order = Self.order(one, two, count: min(one.count, two.count))
            return order != 0 ? order : one.count - two.count
        }
    }

    /// Feeds a value with its storage class to the hasher, so that equal stored values have equal hashes.
    package func hash(_ column: Int32, into hasher: inout Hasher, _ encodings: TextEncodings) throws {
        let type = sqlite3_column_type(pointer, column)
        hasher.combine(type)
        switch type {
        case SQLITE_INTEGER: hasher.combine(sqlite3_column_int64(pointer, column))
        case SQLITE_FLOAT: hasher.combine(sqlite3_column_double(pointer, column))
        case SQLITE_NULL: break
        case SQLITE_TEXT where encodings.areUTF16: hasher.combine(try text16(column))
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
