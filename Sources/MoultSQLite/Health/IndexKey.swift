import CSQLite
import MoultLibc

/// The key of an index entry, kept for comparison with the next one in SQLite's order.
struct IndexKey: ~Copyable {
    enum Collation: String {
        case binary = "BINARY"
        case nocase = "NOCASE"
        case rtrim = "RTRIM"
    }

    struct Part {
        let isDescending: Bool
        let collation: Collation
    }

    /// The order of a key relative to the next key: before it, as expected; equal except for the rowid; or after it.
    enum Order { case before, same, behind }

    private enum Field {
        case null
        case integer(Int64)
        case real(Double)
        case text(Range<Int>)
        case blob(Range<Int>)

        var rank: Int {
            switch self {
            case .null: 0
            case .integer, .real: 1
            case .text: 2
            case .blob: 3
            }
        }
    }

    private let parts: [Part]
    private var fields: [Field] = []
    private var rowID: Int64 = 0
    private var bytes: [UInt8] = []
    private var nextFields: [Field] = []
    private var nextBytes: [UInt8] = []
    private var hasKey = false

    init(parts: [Part]) { self.parts = parts }

    /// Stores the current row's key, and returns the previous key's order relative to it.
    mutating func replace(by row: borrowing Statement, rowID column: Int32) throws -> Order {
        nextFields.removeAll(keepingCapacity: true)
        nextBytes.removeAll(keepingCapacity: true)
        for column in 0..<column { nextFields.append(try field(row, column)) }
        let id = row.int64(column)
        defer {
            swap(&fields, &nextFields)
            swap(&bytes, &nextBytes)
            (rowID, hasKey) = (id, true)
        }
        guard hasKey else { return .before }
        for (index, part) in parts.enumerated() {
            var order = compare(fields[index], nextFields[index], part.collation)
            if part.isDescending { order = -order }
            if order != 0 { return order < 0 ? .before : .behind }
        }
        guard rowID < id else { return .behind }
        // In a unique index, NULLs count as different from each other.
        return nextFields.contains { if case .null = $0 { true } else { false } } ? .before : .same
    }

    private mutating func field(_ row: borrowing Statement, _ column: Int32) throws -> Field {
        switch row.storage(column) {
        case .null: return .null
        case .integer: return .integer(row.int64(column))
        case .real: return .real(row.double(column))
        case .text: return .text(try keep(row, column))
        case .blob: return .blob(try keep(row, column))
        }
    }

    private mutating func keep(_ row: borrowing Statement, _ column: Int32) throws -> Range<Int> {
        let start = nextBytes.count
        try row.withBlob(column) { nextBytes.append(contentsOf: $0) }
        return start..<nextBytes.count
    }

    private func compare(_ one: Field, _ two: Field, _ collation: Collation) -> Int {
        switch (one, two) {
        case (.integer(let one), .integer(let two)): Statement.order(one, two)
        case (.real(let one), .real(let two)): Statement.order(one, two)
        case (.integer(let one), .real(let two)): Statement.order(one, two)
        case (.real(let one), .integer(let two)): -Statement.order(two, one)
        case (.text(let one), .text(let two)):
            switch collation {
            case .binary: compare(one, two)
            case .rtrim: compare(trimmed(one, bytes), trimmed(two, nextBytes))
            case .nocase: compareFolded(one, two)
            }
        case (.blob(let one), .blob(let two)): compare(one, two)
        default: one.rank - two.rank
        }
    }

    private func compare(_ one: Range<Int>, _ two: Range<Int>) -> Int {
        let order = bytes.withUnsafeBytes { bytes in
            nextBytes.withUnsafeBytes { next in
                guard let a = bytes.baseAddress, let b = next.baseAddress else { return 0 }
                return Int(memcmp(a + one.lowerBound, b + two.lowerBound, min(one.count, two.count)))
            }
        }
        return order != 0 ? order : one.count - two.count
    }

    private func trimmed(_ range: Range<Int>, _ bytes: [UInt8]) -> Range<Int> {
        var end = range.upperBound
        while end > range.lowerBound, bytes[end - 1] == 0x20 { end -= 1 }
        return range.lowerBound..<end
    }

    /// Folds only ASCII letters, as SQLite does.
    private func compareFolded(_ one: Range<Int>, _ two: Range<Int>) -> Int {
        func folded(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte }
        for offset in 0..<min(one.count, two.count) {
            let order = Int(folded(bytes[one.lowerBound + offset])) - Int(folded(nextBytes[two.lowerBound + offset]))
            if order != 0 { return order }
            // SQLite compares folded text only up to the first NUL.
            if bytes[one.lowerBound + offset] == 0 { break }
        }
        return one.count - two.count
    }
}

extension Statement {
    /// Hashes a value as an index stores it: a real without a fraction is stored as an integer.
    func hashAsKey(_ column: Int32, into hasher: inout Hasher) throws {
        if storage(column) == .real, let whole = Int64(exactly: double(column)) {
            hasher.combine(SQLITE_INTEGER)
            hasher.combine(whole)
        } else {
            try hash(column, into: &hasher, .utf8)
        }
    }
}
