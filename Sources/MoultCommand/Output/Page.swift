internal import MoultBasics

struct Page {
    let terminal: Terminal
    private(set) var text = ""
    private let complete: (Advice.Command) -> Advice.Command

    init(for terminal: Terminal, completing complete: @escaping (Advice.Command) -> Advice.Command = { $0 }) {
        (self.terminal, self.complete) = (terminal, complete)
    }

    var tick: StyledText { StyledText(terminal.symbols.tick, .good) }
    var cross: StyledText { StyledText(terminal.symbols.cross, .bad) }

    mutating func line(_ line: StyledText = "") { text += line.completing(complete).rendered(for: terminal) + "\n" }

    /// Writes running text, wrapped and indented.
    mutating func paragraph(_ paragraph: StyledText, indent: Int = 0) {
        for part in paragraph.completing(complete).wrapped(to: terminal.proseWidth - indent) {
            line(spaces(indent) + part)
        }
    }

    /// Writes a line: wrapped and indented on a terminal, and unbroken in a pipe, for programs.
    mutating func wrapped(_ line: StyledText, indent: Int = 0) {
        guard let width = terminal.width else { return self.line(spaces(indent) + line) }
        for part in line.completing(complete).wrapped(to: max(width - indent, 20)) { self.line(spaces(indent) + part) }
    }

    /// Writes a diagnostic: on one line in a pipe; on a terminal, wrapped with indented continuation lines.
    mutating func diagnostic(_ text: StyledText, indent: Int = 0) {
        let text = text.completing(complete).spelt(for: terminal)
        guard let width = terminal.width else { return line(spaces(indent) + text) }
        let parts = text.wrapped(to: max(width - indent - 2, 20))
        for (index, part) in parts.enumerated() { line(spaces(indent + (index > 0 ? 2 : 0)) + part) }
    }

    mutating func table(_ table: Table) {
        for part in table.completing(complete).lines(width: terminal.width) { line(part) }
    }

    /// Writes names and values below each other, those that have a value.
    mutating func facts(_ facts: KeyValuePairs<String, StyledText?>, indent: Int = 0) {
        var table = Table(.left, .left, indent: indent)
        for (name, value) in facts { if let value { table.row(StyledText(name), value) } }
        self.table(table)
    }

    /// Writes a table as running text, which is wrapped in a pipe as well.
    mutating func proseTable(_ table: Table) { for part in table.lines(width: terminal.proseWidth) { line(part) } }

    mutating func raw(_ raw: String) { text += raw }

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
            case .list(let items): list(items.map { (StyledText($0.term), $0.meaning) }, indent: indent + 2)
            }
        }
    }

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

/// A verb's result, which can be written for humans and for programs.
protocol Report {
    func write(to page: inout Page)
    /// The members of the result's JSON object; the output adds `"format"`.
    var json: JSON { get }
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
