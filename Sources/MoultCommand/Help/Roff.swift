internal import Moult
internal import StepKit

struct Roff {
    private(set) var text = ""
    private var isAfterHeading = false

    init(name: String, section: Int, summary: String) {
        line(".TH", "\(Self.escaped(name.uppercased())) \(section) \"\" \"moult \(moultVersion)\" \"\"")
        self.section("NAME")
        line("", "\(Self.escaped(name)) \\- \(Self.escaped(summary))")
    }

    mutating func line(_ request: String, _ rest: String = "") {
        text += [request, rest].filter { !$0.isEmpty }.joined(separator: " ") + "\n"
        isAfterHeading = request == ".SH" || request == ".SS"
    }

    mutating func section(_ title: String) { line(".SH", Self.escaped(title)) }

    mutating func paragraph(_ paragraph: String) {
        beginParagraph()
        line("", Self.escaped(paragraph))
    }

    mutating func item(_ term: String, _ meaning: String) {
        line(".TP")
        line(".B", Self.escaped(term))
        line("", Self.escaped(meaning))
    }

    /// Starts a paragraph, unless a heading has already started one.
    private mutating func beginParagraph() { if !isAfterHeading { line(".PP") } }

    mutating func literal(_ lines: String) {
        beginParagraph()
        line(".RS 4")
        line(".nf")
        for part in lines.split(separator: "\n", omittingEmptySubsequences: false) {
            line("", Self.escaped(String(part)))
        }
        line(".fi")
        line(".RE")
    }

    mutating func prose(_ pieces: [Prose]) {
        for piece in pieces {
            switch piece {
            case .heading(let title): line(".SS", Self.escaped(title))
            case .paragraph(let text): paragraph(text)
            case .literal(let text): literal(text)
            case .list(let items): for (term, meaning) in items { item(term, meaning) }
            }
        }
    }

    mutating func exitStatus(_ meanings: [(status: ExitCode, meaning: String)]) {
        section("EXIT STATUS")
        for (status, meaning) in meanings { item("\(status.rawValue)", meaning) }
    }

    mutating func seeAlso(_ pages: [String]) {
        section("SEE ALSO")
        line("", Self.escaped(pages.joined(separator: ", ")))
    }

    /// Escapes text so that roff prints it unchanged: a backslash starts an escape, a bare hyphen or backtick may become
    /// another character, and a full stop or apostrophe at the start of a line starts a request.
    static func escaped(_ text: String) -> String {
        var result = text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" : ""
        for character in text {
            switch character {
            case "\\": result += "\\(rs"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "\"": result += "\\(dq"
            case "`": result += "\\(ga"
            default: result.append(character)
            }
        }
        return result
    }
}
