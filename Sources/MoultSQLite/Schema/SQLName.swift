/// A name as SQLite compares it: byte by byte, except that the letters A to Z are the same in either case. Swift would take
/// two ways to write é for one name.
package struct SQLName: Hashable, Comparable, Sendable {
    private let bytes: [UInt8]

    package init(_ text: String) { bytes = text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 } }

    package static func < (a: SQLName, b: SQLName) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }
}

/// Calls the body with what has the same name on both sides, byte by byte, or is on one side only, in the order of the second.
package func pair<Part>(
    _ first: [Part], _ second: [Part], by name: (Part) -> String, _ body: (Part?, Part?) -> Void
) {
    func key(_ part: Part) -> [UInt8] { Array(name(part).utf8) }
    let firstByKey = Dictionary(first.map { (key($0), $0) }) { first, _ in first }
    let secondKeys = Set(second.map(key))
    for part in second { body(firstByKey[key(part)], part) }
    for part in first where !secondKeys.contains(key(part)) { body(part, nil) }
}
