internal import MoultBasics

/// Formats an error for humans (what, why, next step) and for programs.
struct ErrorReport {
    let error: MoultError
    private let isVerbose: Bool

    init(_ error: any Error, isVerbose: Bool = false) {
        self.error = (error as? MoultError) ?? MoultError(.unexpected, what: "\(error)")
        self.isVerbose = isVerbose
    }

    var status: ExitCode { .failure(error.outcome) }

    /// Returns a line with what failed and why, and a line with the next step, if the error has one. With `--verbose`, the
    /// causes follow.
    func text(for terminal: Terminal) -> String {
        var page = Page(for: terminal)
        page.diagnostic("moult: \("error:", .bad) \(Self.line(error))")
        for line in error.now.map({ Self.advice($0, for: terminal) }) ?? [] { page.diagnostic(line, indent: 2) }
        if isVerbose {
            for cause in error.chain.dropFirst() {
                page.diagnostic(
                    "\("caused by:", .dim) \((cause as? MoultError).map(Self.line) ?? "\(cause)")", indent: 2)
            }
        }
        return page.text
    }

    var json: JSON {
        var members = Self.members(of: error)
        if isVerbose {
            let causes = error.chain.dropFirst().map { cause in
                (cause as? MoultError).map(Self.members) ?? .record(["what": "\(cause)"])
            }
            members = members.setting("causes", to: .array(causes))
        }
        return ["error": members]
    }

    private static func members(of error: MoultError) -> JSON {
        .record([
            "code": error.code.description, "outcome": error.outcome.name, "exit": error.outcome.rawValue,
            "what": error.what, "why": error.why, "now": error.now?.description,
        ])
    }

    private static func line(_ error: MoultError) -> String { error.what + (error.why.map { ": \($0)" } ?? "") }

    /// Returns the advice in its printed form: a command is shown as something to run, a sentence unchanged. On a terminal, a
    /// command that ends a sentence also ends the line, without a full stop, so that it can be copied.
    private static func advice(_ now: Advice, for terminal: Terminal) -> [StyledText] {
        if case .command? = now.parts.first, now.parts.count == 1 { return ["Try: \(now, .heading)"] }
        guard terminal.width != nil else { return [StyledText(now)] }
        var lines: [StyledText] = [StyledText()]
        var wasCommand = false
        for piece in now.pieces {
            var text = piece.text
            if wasCommand, text == "." || text.hasPrefix(". ") {
                text.removeFirst(min(2, text.count))
                lines.append(StyledText())
            }
            lines[lines.count - 1] += StyledText(parts: [.init(text: text, style: nil, command: piece.command)])
            wasCommand = piece.command != nil
        }
        return lines.filter { !$0.plain.isEmpty }
    }
}
