internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// The capabilities of an output stream: a terminal with a width, with or without colour, or a pipe or file.
struct Terminal: Sendable, Equatable {
    /// The width in columns; nil for a pipe or a file.
    var width: Int?
    var hasColor: Bool
    var hasUnicode: Bool
    /// Whether the cursor can be moved, so that a line can be redrawn.
    var canRedraw: Bool

    var isTerminal: Bool { width != nil }

    /// The width for running text: long lines are hard to read, and a pipe has no width.
    var proseWidth: Int { min(width ?? 80, 100) }

    init(width: Int? = nil, hasColor: Bool = false, hasUnicode: Bool = false, canRedraw: Bool = false) {
        self.width = width
        self.hasColor = hasColor
        self.hasUnicode = hasUnicode
        self.canRedraw = canRedraw
    }

    init(descriptor: Int32, environment: Environment) {
        let isTerminal = isatty(descriptor) == 1
        let columns = isTerminal ? Int(moult_terminal_columns(descriptor)) : 0
        self.init(isTerminal: isTerminal, columns: columns, environment: environment)
    }

    /// Uses the given facts; `columns` is 0 if the terminal does not report its width.
    init(isTerminal: Bool, columns: Int, environment: Environment) {
        let named = environment["COLUMNS"].flatMap { Int($0) } ?? 0
        let known = named > 0 ? named : columns > 0 ? columns : 80
        width = isTerminal ? max(known, 20) : nil
        canRedraw = isTerminal && (environment["TERM"] ?? "dumb") != "dumb"
        hasColor = Self.color(canRedraw, environment)
        hasUnicode = Self.unicode(environment)
    }

    /// Returns whether to use colour, according to NO_COLOR (no-color.org), CLICOLOR_FORCE, CLICOLOR, then the terminal's
    /// capability.
    private static func color(_ capable: Bool, _ environment: Environment) -> Bool {
        if environment["NO_COLOR"] != nil { return false }
        if let force = environment["CLICOLOR_FORCE"], force != "0" { return true }
        return capable && environment["CLICOLOR"] != "0"
    }

    /// Returns whether the locale uses UTF-8, according to the first of the three variables that is set, as in setlocale(3).
    private static func unicode(_ environment: Environment) -> Bool {
        let locale = environment["LC_ALL"] ?? environment["LC_CTYPE"] ?? environment["LANG"] ?? "C"
        let name = Array(locale.lowercased().utf8)
        return contains("utf-8", in: name) || contains("utf8", in: name)
    }

    /// The few symbols that are not letters, in Unicode or ASCII depending on the locale.
    struct Symbols: Sendable {
        let tick: String
        let cross: String
        let arrow: String
        let dot: String
        let ellipsis: String
        let barDone: String
        let barRest: String

        static let unicode = Symbols(
            tick: "✓", cross: "✗", arrow: "→", dot: "·", ellipsis: "…", barDone: "━", barRest: "─")
        static let ascii = Symbols(
            tick: "ok", cross: "x", arrow: "->", dot: "-", ellipsis: "...", barDone: "#", barRest: ".")
    }
}

extension Terminal {
    var symbols: Symbols { hasUnicode ? .unicode : .ascii }
}
