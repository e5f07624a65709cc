/// A name as SQLite compares it: byte by byte, except that A to Z are case-insensitive.
///
/// Names must not be compared as Swift strings: Swift treats the two encodings of é as equal, SQLite as different.
package struct SQLName: Hashable, Comparable, Sendable {
    /// The original spelling of the name.
    package let text: String
    private let folded: [UInt8]

    package init(_ text: String) {
        self.text = text
        folded = text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }

    package static func == (a: SQLName, b: SQLName) -> Bool { a.folded == b.folded }

    package func hash(into hasher: inout Hasher) { hasher.combine(folded) }

    package static func < (a: SQLName, b: SQLName) -> Bool { a.folded.lexicographicallyPrecedes(b.folded) }

    package func hasPrefix(_ prefix: String) -> Bool { folded.starts(with: SQLName(prefix).folded) }

    package func hasSuffix(_ suffix: String) -> Bool { folded.suffix(suffix.utf8.count) == SQLName(suffix).folded[...] }

    /// Whether SQLite reserves this name for its own tables and indexes.
    package var isInternal: Bool { hasPrefix("sqlite_") }
}

/// The suffixes of the sidecars: the files that SQLite keeps next to a database.
package enum SidecarSuffixes {
    /// The suffixes of files that may contain rows of the database.
    package static let withRows = ["-wal", "-journal"]
    package static let all = ["-wal", "-shm", "-journal"]
}

/// The table with the release that a shared database's content is from.
package let releaseTable = "moult_release"
/// The table of rows that did not fit into a new release.
package let rejectedTable = "moult_rejected"
/// The table with the update that a database is part of, until the update has ended.
package let transactionTable = "moult_transaction"
/// The tables that moult adds to databases. They are not part of a database's content or schema: a release can contain them if
/// it was made from a database in a store.
package let ownTables: Set<String> = [releaseTable, rejectedTable, transactionTable]

extension SQLName: ExpressibleByStringLiteral, CustomStringConvertible {
    package init(stringLiteral text: String) { self.init(text) }

    package var description: String { text }
}

extension String {
    /// Returns whether both strings consist of the same bytes. `==` would treat the two encodings of é as equal, and takes
    /// quadratic time for many combining marks.
    package func hasBytes(of other: String) -> Bool { utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8) }
}

/// Pairs the parts of two lists whose names have the same bytes, and calls the body for each pair and for each part in only one
/// list. The order is that of the second list, followed by the parts that only the first list has.
package func pair<Part>(
    _ first: [Part], _ second: [Part], by name: (Part) -> String, _ body: (Part?, Part?) -> Void
) {
    func key(_ part: Part) -> [UInt8] { Array(name(part).utf8) }
    let firstByKey = Dictionary(first.map { (key($0), $0) }) { first, _ in first }
    let secondKeys = Set(second.map(key))
    for part in second { body(firstByKey[key(part)], part) }
    for part in first where !secondKeys.contains(key(part)) { body(part, nil) }
}
