internal import MoultBasics

/// Parses a command line. Options may appear anywhere, as `--name value`, `--name=value`, `-n value` or `-nvalue`; `-qv` is the
/// same as `-q -v`, and `--` ends the options.
struct LineParser {
    private let commands: [Command]
    private var line = ParsedLine()
    private var words: ArraySlice<String>
    private var plainWords: [String] = []

    private init(words: [String], commands: [Command]) {
        self.words = words[...]
        self.commands = commands
    }

    /// Parses the arguments after the program's name; throws a usage error with the problem.
    static func parse(_ words: [String], commands: [Command]) throws(MoultError) -> ParsedLine {
        var parser = LineParser(words: words, commands: commands)
        try parser.readWords()
        let line = parser.line
        // A user who asks for help may not know the rest of the syntax yet.
        if line.has(.help) || line.asksForVersion { return line }
        guard line.command != nil else { throw parser.errors.noVerb() }
        try parser.placeArguments()
        try parser.requireOptions()
        return parser.line
    }

    private var errors: UsageErrors { UsageErrors(verb: line.command?.name) }

    /// The options allowed at this point. Before the verb, only the options common to all verbs are allowed.
    private var options: [Option] { line.command?.options ?? Option.beforeVerb }

    private mutating func readWords() throws(MoultError) {
        var optionsEnded = false
        while let word = words.popFirst() {
            if optionsEnded || word == "-" || !word.hasPrefix("-") {
                try readPlain(word)
            } else if word == "--" {
                optionsEnded = true
            } else {
                try readOption(word)
            }
        }
    }

    private mutating func readPlain(_ word: String) throws(MoultError) {
        guard line.command == nil else {
            plainWords.append(word)
            return
        }
        // Many programs have a `version` verb.
        if word == Option.version.name { return line.options[word] = [] }
        guard let command = commands.first(where: { $0.name == word }) else {
            throw errors.unknownVerb(word, among: commands.map(\.name))
        }
        line.command = command
        // Options before the verb must be valid for it.
        for name in line.options.keys.sorted() where !command.options.contains(where: { $0.name == name }) {
            throw errors.unknownOption("--\(name)", among: command.options)
        }
    }

    private mutating func readOption(_ word: String) throws(MoultError) {
        guard word.hasPrefix("--") else { return try readLetters(word) }
        let equal = word.utf8.firstIndex(of: UInt8(ascii: "="))
        let name = String(word[..<(equal ?? word.endIndex)])
        guard let option = options.first(where: { ([$0.name] + $0.aliases).contains { "--\($0)" == name } }) else {
            throw errors.unknownOption(name, among: options)
        }
        try read(option, equal.map { String(word[word.utf8.index(after: $0)...]) })
    }

    /// Reads a word of one-letter options, such as `-qv`; the last one may take a value.
    private mutating func readLetters(_ word: String) throws(MoultError) {
        var letters = word.dropFirst()
        // `-store` does not mean a store called `tore`.
        if letters.count > 1, options.contains(where: { $0.name == letters }) {
            throw errors.unknownOption(word, among: options)
        }
        while let letter = letters.popFirst() {
            guard let option = options.first(where: { $0.letter == letter }) else {
                throw errors.unknownLetter(letter, in: word, among: options)
            }
            let isLast = letters.isEmpty || option.value != nil
            try read(option, isLast && !letters.isEmpty ? String(letters) : nil)
            if isLast { return }
        }
    }

    private mutating func read(_ option: Option, _ inline: String?) throws(MoultError) {
        guard let value = option.value else {
            if inline != nil { throw errors.needlessValue(option) }
            line.options[option.name] = []
            return
        }
        guard let text = inline ?? nextValue(for: value), !text.isEmpty else { throw errors.missingValue(option) }
        if let misfit = errors.misfit(text, for: value, of: "--\(option.name)") { throw misfit }
        if line.has(option), !option.repeats { throw errors.repeated(option) }
        line.options[option.name, default: []].append(Self.path(text, value))
    }

    /// Returns the next word, unless it is an option: in `--store --json` the directory is missing.
    private mutating func nextValue(for value: ArgumentType) -> String? {
        guard let next = words.first else { return nil }
        // No option is a digit.
        if case .number = value.kind, Int(next) != nil { return words.popFirst() }
        guard next == "-" || !next.hasPrefix("-") else { return nil }
        return words.popFirst()
    }

    private mutating func placeArguments() throws(MoultError) {
        let arguments = line.command?.arguments ?? []
        var rest = plainWords[...]
        for argument in arguments {
            let taken = argument.repeats ? rest.count : min(1, rest.count)
            if taken == 0, argument.isRequired { throw errors.missing(argument) }
            for word in rest.prefix(taken) {
                if let misfit = errors.misfit(word, for: argument.value, of: argument.name) { throw misfit }
                line.arguments[argument.name, default: []].append(Self.path(word, argument.value))
            }
            rest = rest.dropFirst(taken)
        }
        if let word = rest.first {
            let isStore = line.command?.usesStore == true && StoreLocation.isStore(word)
            throw errors.tooMany(word, arguments: arguments, store: isStore ? word : nil)
        }
    }

    /// Returns a path that begins with a dash as `./-a`: in a command that is advised, or passed to another program, it would be an
    /// option.
    private static func path(_ text: String, _ type: ArgumentType) -> String {
        switch type.kind {
        case .file, .directory, .source: text.hasPrefix("-") && text != "-" ? "./\(text)" : text
        case .text, .choice, .offer, .number, .ofStore: text
        }
    }

    private func requireOptions() throws(MoultError) {
        for option in line.command?.ownOptions ?? [] where option.requirement != nil && !line.has(option) {
            throw errors.missing(option)
        }
    }
}

/// A parsed command line: the verb, its options and its arguments.
struct ParsedLine: Sendable {
    /// The verb; nil if none was given.
    var command: Command?
    /// The values of the given options, by long name; a flag has none.
    var options: [String: [String]] = [:]
    var arguments: [String: [String]] = [:]

    func has(_ option: Option) -> Bool { options[option.name] != nil }

    /// Throws if options are given that the verb does not allow together.
    func checkRules() throws(MoultError) {
        let errors = UsageErrors(verb: command?.name)
        for rule in command?.rules ?? [] {
            switch rule {
            case .needs(let option, let other, let why):
                if has(option), !has(other) { throw errors.error("--\(option.name) needs \(other.usage)", why: why) }
            case .one(let options, let why):
                let given = options.filter(has).map { "--\($0.name)" }
                if given.count > 1 {
                    throw errors.error("\(given[0]) and \(given[1]) cannot be used together", why: why)
                }
            }
        }
    }

    /// Whether the user asked for moult's version; a verb may use an option of that name for something else.
    var asksForVersion: Bool {
        has(.version) && command?.ownOptions.contains { $0.name == Option.version.name } != true
    }

    /// The words `--store DIR` if the option was given; otherwise empty.
    var storeWords: [String] { options[Option.store.name]?.last.map { ["--store", $0] } ?? [] }
}
