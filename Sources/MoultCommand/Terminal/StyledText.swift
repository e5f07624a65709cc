internal import MoultBasics

/// Text whose parts may be styled, created by interpolation: `"\(name, .heading) is installed"`.
struct StyledText: Sendable, Equatable {
    struct Part: Sendable, Equatable {
        var text: String
        var style: Style?
        /// The command that the text is; it is neither broken nor respelt.
        var command: Advice.Command?
        var isCommand: Bool { command != nil }
    }

    private(set) var parts: [Part] = []

    init() {}
    init(parts: [Part]) { self.parts = parts }
    init(_ text: String, _ style: Style? = nil) { parts = text.isEmpty ? [] : [Part(text: text, style: style)] }

    init(_ advice: Advice, _ style: Style? = nil) {
        parts = advice.pieces.map { Part(text: $0.text, style: style, command: $0.command) }
    }

    static func + (a: Self, b: Self) -> Self {
        var sum = a
        sum += b
        return sum
    }
    static func += (a: inout Self, b: Self) {
        for part in b.parts {
            if let last = a.parts.indices.last, a.parts[last].style == part.style, !a.parts[last].isCommand,
                !part.isCommand
            {
                a.parts[last].text += part.text
            } else {
                a.parts.append(part)
            }
        }
    }

    var plain: String { parts.map(\.text).joined() }

    /// Replaces the ellipsis with three full stops on terminals without Unicode. Only for moult's own sentences, because data
    /// from elsewhere must stay unchanged.
    func spelt(for terminal: Terminal) -> StyledText {
        if terminal.hasUnicode { return self }
        var text = self
        for index in parts.indices where !parts[index].isCommand {
            text.parts[index].text = text.parts[index].text.replacing(scalar: "…", with: "...")
        }
        return text
    }

    /// Returns the text with those commands that `complete` returns.
    func completing(_ complete: (Advice.Command) -> Advice.Command) -> StyledText {
        var text = self
        for index in parts.indices {
            guard let command = parts[index].command.map(complete) else { continue }
            text.parts[index].command = command
            text.parts[index].text = command.line
        }
        return text
    }

    var width: Int { parts.reduce(0) { $0 + displayWidth($1.text) } }

    /// Returns the text with escape sequences for the terminal, and with control characters from other sources made visible.
    func rendered(for terminal: Terminal) -> String {
        parts.map { part in
            let text = visible(part.text)
            guard terminal.hasColor, let style = part.style else { return text }
            return "\u{1B}[\(style.code)m\(text)\u{1B}[0m"
        }.joined()
    }
}

extension StyledText: ExpressibleByStringInterpolation {
    init(stringLiteral text: String) { self.init(text) }
    init(stringInterpolation: StringInterpolation) { self = stringInterpolation.text }

    struct StringInterpolation: StringInterpolationProtocol {
        var text = StyledText()

        init(literalCapacity: Int, interpolationCount: Int) {}
        mutating func appendLiteral(_ literal: String) { text += StyledText(literal) }
        mutating func appendInterpolation(_ value: some CustomStringConvertible, _ style: Style? = nil) {
            text += StyledText(value.description, style)
        }
        mutating func appendInterpolation(_ value: StyledText) { text += value }
        mutating func appendInterpolation(_ advice: Advice, _ style: Style? = nil) { text += StyledText(advice, style) }
        mutating func appendInterpolation(run words: [String], _ style: Style? = nil) {
            text += StyledText("\(run: words)" as Advice, style)
        }
    }
}

/// The meaning of a piece of text. Colour only emphasizes what the words already say.
enum Style: Sendable, Equatable, CaseIterable {
    case added, removed, changed, good, bad, warning, dim, heading

    /// The parameters of the escape sequence (SGR). The 16 basic colours follow the user's theme, dark or light.
    var code: String {
        switch self {
        case .added, .good: "32"
        case .removed: "31"
        case .changed, .warning: "33"
        case .bad: "1;31"
        case .dim: "2"
        case .heading: "1"
        }
    }
}
