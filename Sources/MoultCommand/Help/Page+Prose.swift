extension Page {
    /// Writes paragraphs separated by blank lines.
    mutating func prose(_ pieces: [Prose], indent: Int = 0) {
        for (index, piece) in pieces.enumerated() {
            if index > 0 { line() }
            switch piece {
            case .heading(let text): line(spaces(indent) + StyledText(text, .heading))
            case .paragraph(let text): paragraph(StyledText(text), indent: indent)
            case .literal(let text):
                for part in text.split(separator: "\n", omittingEmptySubsequences: false) {
                    line(spaces(indent + 4) + StyledText(String(part)))
                }
            case .list(let items):
                list(items.map { (StyledText($0.term), $0.meaning) }, indent: indent + 2)
            }
        }
    }

    /// Writes terms in one column and their meanings in the next.
    mutating func list(_ items: [(term: StyledText, meaning: String)], indent: Int = 2, minWidth: Int = 0) {
        var table = Table(.left(minWidth: minWidth), .left, indent: indent)
        for item in items { table.row(item.term, StyledText(item.meaning)) }
        proseTable(table)
    }

    mutating func heading(_ title: String) {
        line()
        line("\(title + ":", .heading)")
    }
}

/// A block of running text. Terminal help and man pages are generated from the same blocks.
enum Prose: Sendable, ExpressibleByStringLiteral {
    case heading(String)
    case paragraph(String)
    /// Lines printed verbatim: a command or the content of a file.
    case literal(String)
    /// Terms and their meanings.
    case list([(term: String, meaning: String)])

    init(stringLiteral text: String) { self = .paragraph(text) }
}
