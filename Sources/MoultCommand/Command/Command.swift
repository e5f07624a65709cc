/// A verb of the command line. Help, completions, man pages and usage errors are all generated from it.
package struct Command: Sendable {
    /// The audience of the verb; the overview groups verbs by audience.
    package enum Group: String, Sendable, CaseIterable {
        case operators = "For operators"
        case publishers = "For publishers"
        case other = "Other commands"
    }

    package struct Example: Sendable {
        package let purpose: String
        package let line: String
        package init(_ purpose: String, _ line: String) {
            self.purpose = purpose
            self.line = line
        }
    }

    /// An exit status with a specific meaning for this verb.
    package struct Exit: Sendable {
        package let status: ExitCode
        package let meaning: String
        package init(_ status: ExitCode, _ meaning: String) {
            self.status = status
            self.meaning = meaning
        }
    }

    package let name: String
    package let group: Group
    /// One line, without a full stop.
    package let summary: String
    package let discussion: [Prose]
    package let arguments: [Argument]
    /// The verb's own options; `options` adds the common ones.
    package let ownOptions: [Option]
    /// Whether the verb works on a store, and so has the option `--store`.
    package let usesStore: Bool
    /// Whether the verb may change the store. If so, its exit status must say whether it did.
    package let changesStore: Bool
    package let examples: [Example]
    package let exits: [Exit]
    package let run: @Sendable (Call) throws -> ExitCode

    package init(
        _ name: String, _ group: Group, _ summary: String, discussion: [Prose] = [], arguments: [Argument] = [],
        options: [Option] = [], usesStore: Bool = true, changesStore: Bool = false, examples: [Example],
        exits: [Exit] = [],
        run: @escaping @Sendable (Call) throws -> ExitCode
    ) {
        self.name = name
        self.group = group
        self.summary = summary
        self.discussion = discussion
        self.arguments = arguments
        self.ownOptions = options
        self.usesStore = usesStore
        self.changesStore = changesStore
        self.examples = examples
        self.exits = exits
        self.run = run
    }

    package var commonOptions: [Option] { (usesStore ? [.store] : []) + [.json, .quiet, .verbose, .help] }
    package var options: [Option] { ownOptions + commonOptions }

    /// The usage line: `moult sign [options] --key FILE FILE...`.
    package var usage: String {
        let required = ownOptions.filter { $0.requirement != nil }
        return (["moult", name, "[options]"] + required.map(\.usage) + arguments.map(\.usage)).joined(separator: " ")
    }
}
