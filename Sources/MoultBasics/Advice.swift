/// The next step after an error or in a message: text, and the commands in it.
///
/// A command is a value, so the terminal can add the store to it and a library can name its own function instead, without a search
/// in the text. A string literal is an advice; paths and names in it are text, whatever they contain:
///
///     throw MoultError(code, what: "cannot read \(path)", now: "Restore \(path) from a backup.")
public struct Advice: Sendable, Equatable {
    /// A command to run.
    package struct Command: Sendable, Equatable {
        /// The program and its arguments, unquoted.
        package var words: [String]
        /// The rest of the line, as a shell reads it: a redirection, a pattern, another command.
        package var rest = ""

        package init(_ words: [String], rest: String = "") { (self.words, self.rest) = (words, rest) }
        /// Creates a line of commands, of which each runs if the one before it succeeds.
        package init(_ commands: [[String]]) {
            self.init(
                commands.first ?? [], rest: commands.dropFirst().map { "&& \(shellLine($0))" }.joined(separator: " "))
        }

        /// The verb of a command of moult; nil for other programs.
        package var verb: String? { words.first == "moult" && words.count > 1 ? words[1] : nil }
        /// The command as a shell reads it.
        package var line: String { [shellLine(words), rest].filter { !$0.isEmpty }.joined(separator: " ") }

        /// Returns the command with further words, before those after `--`.
        package func adding(_ more: [String]) -> Command {
            let end = words.firstIndex(of: "--") ?? words.endIndex
            return Command(words[..<end] + more + words[end...], rest: rest)
        }
    }

    package enum Part: Sendable, Equatable {
        case text(String)
        case command(Command)
        /// A choice that differs between the command line and the library.
        indirect case choice(commandLine: Advice, app: Advice)
    }

    package private(set) var parts: [Part] = []

    package init(_ parts: [Part]) { for part in parts { append(part) } }
    /// Creates an advice without commands.
    public init(_ text: some StringProtocol) { append(.text(String(text))) }

    private mutating func append(_ part: Part) {
        switch (parts.last, part) {
        case (_, .text("")): break
        case (.text(let before), .text(let text)): parts[parts.count - 1] = .text(before + text)
        default: parts.append(part)
        }
    }

    /// Joins two parts of an advice.
    public static func + (a: Advice, b: Advice) -> Advice { Advice(a.parts + b.parts) }

    /// The advice with a full stop at the end.
    package var sentence: Advice { description.utf8.last == UInt8(ascii: ".") ? self : self + "." }

    /// The parts that a reader of the command line sees.
    private var shown: [Part] {
        parts.flatMap { part in if case .choice(let advice, _) = part { advice.shown } else { [part] } }
    }

    /// The parts as text.
    package var pieces: [(text: String, command: Command?)] {
        shown.compactMap { part in
            switch part {
            case .text(let text): (text, nil)
            case .command(let command): (command.line, command)
            case .choice: nil
            }
        }
    }

    package var commands: [Command] {
        shown.compactMap { part in if case .command(let command) = part { command } else { nil } }
    }

    /// The parts that concern the command line or an app, with the commands that `body` returns.
    package func mapping(isForApp: Bool = false, _ body: (Command) -> Part) -> Advice {
        Advice(
            parts.flatMap { part in
                switch part {
                case .text: [part]
                case .command(let command): [body(command)]
                case .choice(let commandLine, let app):
                    (isForApp ? app : commandLine).mapping(isForApp: isForApp, body).parts
                }
            })
    }

    package func replacing(placeholder: String, with word: String) -> Advice {
        mapping { command in
            .command(Command(command.words.map { $0 == placeholder ? word : $0 }, rest: command.rest))
        }
    }

    /// Returns the advice with each occurrence of a text replaced, in commands, too.
    package func replacing(text: String, with other: String) -> Advice {
        func replaced(_ own: String) -> String { own.replacing(text, with: other) }
        return Advice(
            parts.map { part in
                switch part {
                case .text(let own): .text(replaced(own))
                case .command(let command): .command(Command(command.words.map(replaced), rest: replaced(command.rest)))
                case .choice(let commandLine, let app):
                    .choice(
                        commandLine: commandLine.replacing(text: text, with: other),
                        app: app.replacing(text: text, with: other))
                }
            })
    }

    /// The advice with long quotations in its text shortened. Commands stay complete: a part of a command could be a different one.
    var readable: Advice {
        guard description.utf8.count > 200 else { return self }
        let short = Advice(
            parts.map { part in
                if case .text(let text) = part { .text(MoultBasics.readable(text)) } else { part }
            })
        return short.description.utf8.count <= 20_000 ? short : "The command is too long to be shown."
    }
}

extension Advice: CustomStringConvertible {
    /// The advice as text, with its commands as a shell reads them.
    public var description: String { pieces.map(\.text).joined() }
}

extension Advice: ExpressibleByStringInterpolation {
    /// Creates an advice without commands.
    public init(stringLiteral text: String) { self.init(text) }
    /// Creates an advice from a literal with values in it.
    public init(stringInterpolation: StringInterpolation) { self.init(stringInterpolation.parts) }

    /// Collects the parts of a literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var parts: [Part] = []

        /// Creates the interpolation of an empty literal.
        public init(literalCapacity: Int, interpolationCount: Int) {}
        /// Adds text of the literal.
        public mutating func appendLiteral(_ literal: String) { parts.append(.text(literal)) }
        /// Adds a value as text.
        public mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            parts.append(.text("\(value)"))
        }
        /// Adds the parts of another advice.
        public mutating func appendInterpolation(_ advice: Advice) { parts += advice.parts }
        /// Adds an error, with its advice.
        public mutating func appendInterpolation(_ error: any Error) {
            guard let error = error as? MoultError else { return parts.append(.text("\(error)")) }
            parts.append(.text(error.problem))
            if let now = error.now { parts += [.text(". ")] + now.parts }
        }

        /// Adds a command of moult: a verb and its arguments.
        package mutating func appendInterpolation(moult words: String...) {
            parts.append(.command(Command(["moult"] + words)))
        }
        /// Adds a command of moult: a verb and its arguments.
        package mutating func appendInterpolation(moult words: [String]) {
            parts.append(.command(Command(["moult"] + words)))
        }
        /// Adds a command: a program and its arguments, and the rest of a line for a shell.
        package mutating func appendInterpolation(run words: [String], _ rest: String = "") {
            parts.append(.command(Command(words, rest: rest)))
        }
        /// Adds a command.
        package mutating func appendInterpolation(_ command: Command) { parts.append(.command(command)) }
        /// Adds text that differs between the command line and the library.
        package mutating func appendInterpolation(commandLine: Advice, app: Advice) {
            parts.append(.choice(commandLine: commandLine, app: app))
        }
    }
}

extension Advice {
    /// The advice for another process of moult, which reads it with `init(json:)`.
    package var json: JSON {
        .array(
            shown.map { part in
                if case .command(let command) = part {
                    ["run": .array(command.words.map(JSON.string)), "rest": .string(command.rest)]
                } else {
                    .string(Advice([part]).description)
                }
            })
    }

    /// Reads the advice of another process of moult; nil if it has none.
    package init?(json: JSON?) {
        guard case .array(let parts)? = json else { return nil }
        self.init(
            parts.compactMap { part in
                if case .string(let text) = part { return .text(text) }
                guard case .array(let words)? = part["run"], case .string(let rest)? = part["rest"] else { return nil }
                return .command(
                    Command(
                        words.compactMap { word in if case .string(let text) = word { text } else { nil } }, rest: rest)
                )
            })
    }
}
