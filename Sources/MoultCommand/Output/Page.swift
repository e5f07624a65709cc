internal import MoultBasics

/// Builds the text of a result for one terminal.
struct Page {
    let terminal: Terminal
    private(set) var text = ""
    /// Adds the store to a command.
    private let complete: (Advice.Command) -> Advice.Command

    init(for terminal: Terminal, completing complete: @escaping (Advice.Command) -> Advice.Command = { $0 }) {
        (self.terminal, self.complete) = (terminal, complete)
    }

    var tick: StyledText { StyledText(terminal.symbols.tick, .good) }
    var cross: StyledText { StyledText(terminal.symbols.cross, .bad) }

    /// Writes a single line.
    mutating func line(_ line: StyledText = "") {
        text += line.completing(complete).rendered(for: terminal) + "\n"
    }

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
    mutating func proseTable(_ table: Table) {
        for part in table.lines(width: terminal.proseWidth) { line(part) }
    }

    /// Writes text in the exact form that a program or file needs: a script, rows of a query.
    mutating func raw(_ raw: String) { text += raw }
}

/// A verb's result, which can be written for humans and for programs.
protocol Report {
    /// Writes the result for humans.
    func write(to page: inout Page)
    /// The members of the result's JSON object; the output adds `"format"`.
    var json: JSON { get }
}
