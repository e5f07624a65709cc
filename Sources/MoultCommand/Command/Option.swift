/// One option of a verb: a flag, or with a value.
package struct Option: Sendable {
    /// The long name, without dashes.
    package let name: String
    /// The letter of the short form.
    package let letter: Character?
    /// The kind of its value; nil for a flag.
    package let value: ArgumentType?
    package let summary: String
    /// It may be given more than once, and every value counts.
    package let repeats: Bool

    package init(
        _ name: String, letter: Character? = nil, value: ArgumentType? = nil, repeats: Bool = false, _ summary: String
    ) {
        self.name = name
        self.letter = letter
        self.value = value
        self.repeats = repeats
        self.summary = summary
    }

    /// `--store DIR`, as help shows it.
    package var usage: String { "--\(name)" + (value.map { " \($0.placeholder)" } ?? "") }

    /// Every way to write it: `--out`, `-o`.
    package var spellings: [String] { ["--\(name)"] + (letter.map { ["-\($0)"] } ?? []) }
}

extension Option {
    package static let help = Option("help", letter: "h", "Show this help and do nothing else")
    package static let version = Option("version", "Show the version of moult and do nothing else")
    package static let json = Option("json", "Print results, events and errors as JSON, one object on a line")
    package static let quiet = Option(
        "quiet", letter: "q", "Print only warnings and errors; the exit status tells the rest")
    package static let verbose = Option(
        "verbose", letter: "v", "Say more: details of results, and the causes of errors")
    package static let store = Option(
        "store", letter: "s", value: .directory(),
        "The store; else MOULT_STORE, else the current directory or ./store if moult.json is there")

    /// The options that may precede any verb.
    package static let beforeVerb: [Option] = [.store, .json, .quiet, .verbose, .help, .version]
}
