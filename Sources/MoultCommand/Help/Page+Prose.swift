extension Page {
    /// Pieces of running text with an empty line between them.
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

    /// Terms in one column, what they mean in the next.
    mutating func list(_ items: [(term: StyledText, meaning: String)], indent: Int = 2) {
        var table = Table(.left, .left, indent: indent)
        for item in items { table.row(item.term, StyledText(item.meaning)) }
        proseTable(table)
    }

    mutating func heading(_ title: String) {
        line()
        line("\(title + ":", .heading)")
    }
}

/// A piece of running text; help on a terminal and man pages are made from the same pieces.
package enum Prose: Sendable, ExpressibleByStringLiteral {
    case heading(String)
    case paragraph(String)
    /// Lines that stay as they are: what to type, or what a file looks like.
    case literal(String)
    /// Terms and what they mean.
    case list([(term: String, meaning: String)])

    package init(stringLiteral text: String) { self = .paragraph(text) }
}
