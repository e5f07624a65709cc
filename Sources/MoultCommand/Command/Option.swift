struct Option: Sendable {
    let name: String
    /// Other accepted long names, which help does not show.
    let aliases: [String]
    /// The letter of the short form.
    let letter: Character?
    let value: ArgumentType?
    let summary: String
    /// Whether the option may be repeated, with every value counting.
    let repeats: Bool
    /// Why the option must be given, as the error without it says; nil if it may be omitted.
    let requirement: String?

    init(
        _ name: String, aliases: [String] = [], letter: Character? = nil, value: ArgumentType? = nil,
        repeats: Bool = false, required requirement: String? = nil, _ summary: String
    ) {
        self.name = name
        self.aliases = aliases
        self.letter = letter
        self.value = value
        // Help, manual pages and completions all show the summary, so none of them can omit the mark.
        self.summary = requirement == nil ? summary : "\(summary) (required)"
        self.repeats = repeats
        self.requirement = requirement
    }

    /// `--store DIR`, as shown in help.
    var usage: String { "--\(name)" + (value.map { " \($0.placeholder)" } ?? "") }

    /// `-q, --quiet`, as the first column of a list shows it.
    var term: String { (letter.map { "-\($0), " } ?? "") + usage }

    /// The spellings that help and completions show, without aliases: `--out`, `-o`.
    var spellings: [String] { ["--\(name)"] + (letter.map { ["-\($0)"] } ?? []) }

    /// The words of this option with a value, which may begin with a dash.
    func words(_ value: String) -> [String] { value.hasPrefix("-") ? ["--\(name)=\(value)"] : ["--\(name)", value] }

    static let help = Option("help", letter: "h", "Show this help")
    static let version = Option("version", "Show the version of moult")
    static let json = Option("json", "Print results, events and errors as JSON; in a pipe or file, one object per line")
    static let quiet = Option("quiet", letter: "q", "Print only warnings and errors")
    static let verbose = Option("verbose", letter: "v", "Print details of results, and the causes of errors")
    static let store = Option(
        "store", letter: "s", value: .directory(),
        "The store (default: $MOULT_STORE, else . or ./store, whichever has a moult.json)")

    /// The options that may precede any verb.
    static let beforeVerb: [Option] = [.store, .json, .quiet, .verbose, .help, .version]
}
