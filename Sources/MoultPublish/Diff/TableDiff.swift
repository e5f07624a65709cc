package import MoultRows
import MoultSQLite

/// The differences between the rows of a table, before and after.
package struct TableDiff: Sendable, Equatable {
    package enum Presence: String, Sendable {
        case both
        case added
        case removed
    }

    package enum Method: Sendable, Equatable {
        case primaryKey([String])
        /// By rowid; a row that only moved to a different rowid counts as unchanged.
        case rowid
        /// By their whole content: a changed row counts as one removed row and one added row.
        case content
        /// By the rows of the index, because a full-text index that stores no text has no other content.
        case index
        /// The rows were only counted, because the other side does not have the table.
        case counted
        /// The rows were not read, for this reason.
        case unread(String)
    }

    package var name: String
    package var presence: Presence
    package var method: Method
    /// The columns that both sides have; in a sample, the first `keyColumns` identify the row.
    package var columns: [String] = []
    package var keyColumns = 0
    package var rowsBefore = 0
    package var rowsAfter = 0
    package var added = 0
    package var removed = 0
    package var changed = 0
    package var changedColumns: [ChangedColumn] = []
    package var samples: [RowSample] = []

    package struct ChangedColumn: Sendable, Equatable {
        package var name: String
        package var rows: Int
    }

    package var differs: Bool { presence != .both || added + removed + changed > 0 }

    /// Whether the table differs, or its rows were not read, so that it may differ.
    package var needsOwnLine: Bool { if case .unread = method { true } else { differs } }

    package func count(of kind: RowSample.Kind) -> Int {
        switch kind {
        case .added: added
        case .removed: removed
        case .changed: changed
        }
    }
}

/// A sample row, with the values in the order of its table's columns.
package struct RowSample: Sendable, Equatable {
    package var old: [SampleValue]?
    package var new: [SampleValue]?

    package init(old: [SampleValue]?, new: [SampleValue]?) { (self.old, self.new) = (old, new) }

    package typealias Kind = RowDifference

    package var kind: Kind { old == nil ? .added : new == nil ? .removed : .changed }
    /// The new values, or the old ones of a removed row.
    package var values: [SampleValue] { new ?? old ?? [] }
}

/// A value for display. A long value is truncated.
package enum SampleValue: Sendable, Equatable {
    case null
    case integer(Int64)
    case real(Double)
    /// The text, and its full size in bytes.
    case text(String, bytes: Int)
    case blob([UInt8], bytes: Int)

    package static let longestText = 1000
    package static let longestBlob = 32

    init(_ column: Int32, of row: borrowing Statement) throws {
        switch row.storage(column) {
        case .null: self = .null
        case .integer: self = .integer(row.int64(column))
        case .real: self = .real(row.double(column))
        case .text:
            self = try row.withText(column) { bytes in
                // Cutting a character in the middle would leave an invalid one.
                var end = min(bytes.count, Self.longestText)
                while end > 0, end < bytes.count, bytes[end] & 0xC0 == 0x80 { end -= 1 }
                return .text(String(decoding: bytes[..<end], as: UTF8.self), bytes: bytes.count)
            }
        case .blob: self = try row.withBlob(column) { .blob(Array($0.prefix(Self.longestBlob)), bytes: $0.count) }
        }
    }

    static func all(_ columns: [Int32], of row: borrowing Statement) throws -> [SampleValue] {
        var values: [SampleValue] = []
        for column in columns { values.append(try SampleValue(column, of: row)) }
        return values
    }
}

extension TableDiff.Method {
    package var words: String {
        switch self {
        case .primaryKey(let columns): "primary key \(columns.joined(separator: ", "))"
        case .rowid: "rowid"
        case .content: "content"
        case .index: "rows of the index: it stores no text"
        case .counted: "row count: table on one side only"
        case .unread(let why): "not read: \(why)"
        }
    }
}
