/// `moult help`: shows an overview, or explains a verb or a topic.
enum HelpVerb {
    static let subject = Argument(
        .offer("VERB|TOPIC") { words }, presence: .optional,
        "The verb or topic to explain; \"all\" lists them (default: the verbs that most users need)")

    static let command = Command(
        "help", .other, "explain a verb or a topic", arguments: [subject], usesStore: false,
        examples: [
            "List all verbs and topics:": "moult help all",
            "Explain one verb, like moult completions --help:": "moult help completions",
            "Explain the exit statuses:": "moult help exit-codes",
        ], run: run)

    private static let all = "all"

    /// All names that help accepts; a topic with the same name as a verb is shown with the verb.
    private static var words: [String] {
        let verbs = Command.all.map(\.name)
        return [all] + verbs + Topic.all.map(\.name).filter { !verbs.contains($0) }
    }

    static func run(_ call: Call) throws -> ExitCode {
        let word = call.value(subject)
        guard let word, word != all else {
            call.output.print(OverviewHelp(commands: Command.all, listsAll: word != nil))
            return .done
        }
        if let command = Command.all.first(where: { $0.name == word }) {
            call.output.print(CommandHelp(command: command))
        } else if let topic = Topic.all.first(where: { $0.name == word }) {
            call.output.print(topic)
        } else {
            throw UsageErrors(verb: nil).unknownTopic(word, among: words)
        }
        return .done
    }
}
