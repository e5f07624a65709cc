/// A verb of the command line. Help, completions, man pages and usage errors are all generated from it.
struct Command: Sendable {
    /// The audience of the verb; the overview groups verbs by audience.
    enum Group: String, Sendable, CaseIterable {
        case operators = "For operators"
        case publishers = "For publishers"
        case other = "Other commands"
    }

    /// What the verb requires of options that are given together.
    enum Rule: Sendable {
        /// The first option needs the second one.
        case needs(Option, Option, why: String? = nil)
        /// At most one of the options can be given.
        case one([Option], why: String? = nil)
    }

    let name: String
    let group: Group
    /// One line, without a full stop.
    let summary: String
    let discussion: [Prose]
    let arguments: [Argument]
    /// The verb's own options; `options` adds the common ones.
    let ownOptions: [Option]
    /// Whether the verb works on a store, and so has the option `--store`.
    let usesStore: Bool
    /// Whether the verb may change the store. If so, its exit status must say whether it did.
    let changesStore: Bool
    let rules: [Rule]
    let examples: [(purpose: String, line: String)]
    /// The exit statuses with a specific meaning for this verb.
    let exits: [(status: ExitCode, meaning: String)]
    let run: @Sendable (Call) throws -> ExitCode

    init(
        _ name: String, _ group: Group, _ summary: String, discussion: [Prose] = [], arguments: [Argument] = [],
        options: [Option] = [], rules: [Rule] = [], usesStore: Bool = true, changesStore: Bool = false,
        examples: KeyValuePairs<String, String>, exits: KeyValuePairs<ExitCode, String> = [:],
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
        self.rules = rules
        self.examples = examples.map { (purpose: $0.key, line: $0.value) }
        self.exits = exits.map { (status: $0.key, meaning: $0.value) }
        self.run = run
    }

    var commonOptions: [Option] { (usesStore ? [.store] : []) + [.json, .quiet, .verbose, .help] }
    var options: [Option] { ownOptions + commonOptions }

    /// The usage line: `moult sign [options] --key FILE FILE...`.
    var usage: String {
        let required = ownOptions.filter { $0.requirement != nil }
        return (["moult", name, "[options]"] + required.map(\.usage) + arguments.map(\.usage)).joined(separator: " ")
    }

    static let all: [Command] = [
        ReplaceVerb.command, InitVerb.command, PlanVerb.command, ApplyVerb.command, CheckVerb.command,
        ExportVerb.command, StatusVerb.command, FleetVerb.command, HistoryVerb.command, VerifyVerb.command,
        RollbackVerb.command, HoldVerb.command, UnholdVerb.command, RecoverVerb.command, ResetVerb.command,
        SalvageVerb.command, QuarantineVerb.command, CleanVerb.command, WatchVerb.command, SQLVerb.command,
        AttachVerb.command, CacheVerb.command, BuildVerb.command, PackVerb.command, KeygenVerb.command,
        SignVerb.command, PublishVerb.command, TrustVerb.command, StepsVerb.command, InspectVerb.command,
        DiffVerb.command, DeltaVerb.command, HelpVerb.command, CompletionsVerb.command,
    ]
}
