internal import MoultSQLite

/// The differences between the rows of one table, before and after.
package struct TableDiff: Sendable, Equatable {
    /// On which side the table is.
    package enum Presence: String, Sendable {
        case both
        case added
        case removed
    }

    /// How rows were found to be the same row.
    package enum Method: Sendable, Equatable {
        case primaryKey([String])
        /// By rowid; a row that only moved to another rowid is unchanged.
        case rowid
        /// By all they hold: a changed row is one removed and one added.
        case content
        /// They were only counted, because the other side has no such table.
        case counted
        /// They were not read, and why.
        case unread(String)
    }

    package var name: String
    package var presence: Presence
    package var method: Method
    /// The columns that both sides have; in a sample the first `keyColumns` of them tell which row it is.
    package var columns: [String] = []
    package var keyColumns = 0
    package var rowsBefore = 0
    package var rowsAfter = 0
    package var added = 0
    package var removed = 0
    package var changed = 0
    /// In how many of the changed rows each column differs; those in which it does.
    package var changedColumns: [ChangedColumn] = []
    package var samples: [RowSample] = []

    package struct ChangedColumn: Sendable, Equatable {
        package var name: String
        package var rows: Int
    }

    package var differs: Bool { presence != .both || added + removed + changed > 0 }
}

/// One row as an example, each value in the order of its table's columns.
package struct RowSample: Sendable, Equatable {
    package var old: [SampleValue]?
    package var new: [SampleValue]?

    package init(old: [SampleValue]?, new: [SampleValue]?) { (self.old, self.new) = (old, new) }

    package enum Kind: String, Sendable, CaseIterable {
        case added
        case removed
        case changed
    }

    package var kind: Kind { old == nil ? .added : new == nil ? .removed : .changed }
    /// The values that identify the row.
    package var values: [SampleValue] { new ?? old ?? [] }
}

/// A value to look at: the beginning of it, if it is long.
package enum SampleValue: Sendable, Equatable {
    case null
    case integer(Int64)
    case real(Double)
    /// The text, and how many bytes the whole has.
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
                // A character that the cut goes through would come out as one that does not exist.
                var end = min(bytes.count, Self.longestText)
                while end > 0, end < bytes.count, bytes[end] & 0xC0 == 0x80 { end -= 1 }
                return .text(String(decoding: bytes[..<end], as: UTF8.self), bytes: bytes.count)
            }
        case .blob:
            self = try row.withBlob(column) { .blob(Array($0.prefix(Self.longestBlob)), bytes: $0.count) }
        }
    }

    static func all(_ columns: Range<Int32>, of row: borrowing Statement) throws -> [SampleValue] {
        var values: [SampleValue] = []
        for column in columns { values.append(try SampleValue(column, of: row)) }
        return values
    }
}

extension TableDiff {
    /// It differs, or that is unknown.
    package var needsALine: Bool { if case .unread = method { true } else { differs } }

    package func count(of kind: RowSample.Kind) -> Int {
        switch kind {
        case .added: added
        case .removed: removed
        case .changed: changed
        }
    }
}

extension TableDiff.Method {
    /// How rows were found, in a few words.
    package var words: String {
        switch self {
        case .primaryKey(let columns): "primary key \(columns.joined(separator: ", "))"
        case .rowid: "rowid"
        case .content: "content"
        case .counted: "counted: one side only"
        case .unread(let why): "not read: \(why)"
        }
    }
}
