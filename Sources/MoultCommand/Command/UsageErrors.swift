internal import MoultBasics

struct UsageErrors {
    /// The verb; nil before it is known.
    let verb: String?

    private var name: String { verb ?? "moult" }

    func error(_ what: String, why: String? = nil) -> MoultError {
        MoultError(
            .usage, .usage, what: what, why: why, now: verb.map { "\(moult: $0, "--help")" } ?? "\(moult: "help")")
    }

    private func suggestion(_ word: String, among candidates: [String]) -> String? {
        nearest(to: word, among: candidates).map { "did you mean \"\($0)\"?" }
    }

    func noVerb() -> MoultError { error("no command given") }

    func unknownVerb(_ word: String, among verbs: [String]) -> MoultError {
        error("unknown command \"\(Address(word))\"", why: Self.synonyms[word] ?? suggestion(word, among: verbs))
    }

    /// The verbs of other programs, with the verb of moult to use instead.
    private static let synonyms = [
        "install": "use `moult apply`", "update": "use `moult apply`", "upgrade": "use `moult apply`",
        "undo": "use `moult rollback` for a store, or `moult replace --undo` for a file",
        "restore": "use `moult rollback` for a release, or `moult quarantine --restore` for old content",
        "list": "`moult status` shows the installed release", "log": "use `moult history`",
        "create": "`moult init` creates a store, and `moult pack` creates a release",
    ]

    func unknownTopic(_ word: String, among topics: [String]) -> MoultError {
        error("unknown command or topic \"\(word)\"", why: suggestion(word, among: topics))
    }

    func unknownOption(_ word: String, among options: [Option]) -> MoultError {
        // Each letter is similar to every other one, so only long names are compared.
        let names = word.count > 2 ? options.map { "--\($0.name)" } : []
        // `--fore` is closer to the beginning of `--force-after` than to any other name.
        let beginnings = names.filter { $0.count > word.count }.map { (start: String($0.prefix(word.count)), name: $0) }
        let best = nearest(to: word, among: names + beginnings.map(\.start))
        let meant = best.map { best in names.contains(best) ? best : beginnings.first { $0.start == best }?.name ?? best
        }
        // Other verbs that change a store have this option.
        if name == "apply", ["-n", "--dry-run"].contains(word) {
            return error("apply has no option \"\(word)\"", why: "`moult plan` shows what it would change")
        }
        return error("\(name) has no option \"\(word)\"", why: meant.map { "did you mean \"\($0)\"?" })
    }

    func unknownLetter(_ letter: Character, in word: String, among options: [Option]) -> MoultError {
        let whole = unknownOption(word, among: options + [.version])
        // `-version` is meant as `--version`, but `-qx` as `-q -x`.
        if word.count == 2 || whole.why != nil { return whole }
        return error("\(name) has no option \"-\(letter)\"", why: "\"\(word)\" contains it")
    }

    func missingValue(_ option: Option) -> MoultError {
        error("--\(option.name) needs a value", why: "write \(option.usage)")
    }

    func needlessValue(_ option: Option) -> MoultError {
        error("--\(option.name) takes no value", why: "write only the option, without \"=\"")
    }

    func repeated(_ option: Option) -> MoultError { error("--\(option.name) can be given only once") }

    func missing(_ argument: Argument) -> MoultError { error("\(name) needs the argument \(argument.name)") }

    func missing(_ option: Option) -> MoultError { error("\(name) needs \(option.usage)", why: option.requirement) }

    /// `store` is the store that the user may have meant by the word, if the verb works on a store.
    func tooMany(_ word: String, arguments: [Argument], store: String?) -> MoultError {
        let takes = arguments.isEmpty ? "no arguments" : "only \(arguments.map(\.name).joined(separator: " "))"
        return error(
            "\(name) takes \(takes)",
            why: "unexpected argument \"\(Address(word))\""
                + (store.map { "; to specify that store, write \(shellLine(["--store", $0]))" } ?? ""))
    }

    /// Returns the error for an invalid value of an option or argument; nil if the value is valid.
    func misfit(_ text: String, for value: ArgumentType, of owner: String) -> MoultError? {
        switch value.kind {
        case .file, .directory, .source:
            if text.isEmpty { return error("\(owner) is empty", why: "a variable of the shell may not be set") }
        default: break
        }
        switch value.kind {
        case .text, .source, .offer, .ofStore: return nil
        case .file(orDirectory: false) where text.endsWithSlash:
            return error("\(owner) must be a file, not a directory", why: "\"\(text)\" ends with a slash")
        case .file, .directory:
            let lower = text.lowercased()
            guard lower.hasPrefix("http://") || lower.hasPrefix("https://") else { return nil }
            return error(
                "\(owner) must be a path, not the URL \(Address(text))",
                why: "only the RELEASE of `moult apply` or `moult plan`, and --feed, can be a URL")
        case .choice(let words):
            if words.contains(text) { return nil }
            return error(
                "\(owner) must be one of \(words.joined(separator: ", ")), not \"\(text)\"",
                why: suggestion(text, among: words))
        case .number(let range):
            if let number = Int(text), range.contains(number) { return nil }
            let bounds =
                range.upperBound == .max
                ? "of at least \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
            return error("\(owner) must be a whole number \(bounds), not \"\(text)\"")
        }
    }

    func notText(argument position: Int) -> MoultError { error("argument \(position) is not valid UTF-8") }
}
