/// A manual page in man macros, generated from the same data as the help.
struct ManPage {
    let name: String
    let section: Int
    let text: String

    var fileName: String { "\(name).\(section)" }

    /// Returns every page: one for the command, and one for each verb and topic.
    static func all(for commands: [Command]) -> [ManPage] {
        [overview(commands)] + commands.map(page) + Topic.all.map(page)
    }

    private static func overview(_ commands: [Command]) -> ManPage {
        var roff = Roff(name: "moult", section: 1, summary: "update SQLite databases, all or nothing")
        roff.section("SYNOPSIS")
        roff.line(".B moult", "\(Roff.escaped("VERB [options] [arguments]"))")
        for group in Command.Group.allCases {
            let verbs = commands.filter { $0.group == group }
            if verbs.isEmpty { continue }
            roff.section(group.rawValue.uppercased())
            for verb in verbs { roff.item("moult-\(verb.name)(1)", verb.summary) }
        }
        roff.section("TOPICS")
        for topic in Topic.all { roff.item("moult-\(topic.name)(7)", topic.summary) }
        environment(&roff)
        roff.exitStatus(ExitCode.meanings)
        return ManPage(name: "moult", section: 1, text: roff.text)
    }

    private static func page(_ command: Command) -> ManPage {
        let name = "moult-\(command.name)"
        var roff = Roff(name: name, section: 1, summary: command.summary)
        roff.section("SYNOPSIS")
        roff.paragraph(command.usage)
        if !command.discussion.isEmpty {
            roff.section("DESCRIPTION")
            roff.prose(command.discussion)
        }
        if !command.arguments.isEmpty {
            roff.section("ARGUMENTS")
            for argument in command.arguments { roff.item(argument.name, argument.summary + ".") }
        }
        roff.section("OPTIONS")
        for option in command.options {
            roff.item(option.term, option.summary + (option.repeats ? "; may be repeated." : "."))
        }
        roff.section("EXAMPLES")
        for example in command.examples {
            roff.paragraph(example.purpose)
            roff.literal(example.line)
        }
        if command.usesStore { environment(&roff) }
        if !command.exits.isEmpty { roff.exitStatus(command.exits) }
        roff.seeAlso(["moult(1)", "moult-exit-codes(7)"])
        return ManPage(name: name, section: 1, text: roff.text)
    }

    private static func page(_ topic: Topic) -> ManPage {
        let name = "moult-\(topic.name)"
        var roff = Roff(name: name, section: 7, summary: topic.summary)
        roff.section("DESCRIPTION")
        roff.prose(topic.text)
        roff.seeAlso(["moult(1)"])
        return ManPage(name: name, section: 7, text: roff.text)
    }

    private static func environment(_ roff: inout Roff) {
        roff.section("ENVIRONMENT")
        roff.item("MOULT_STORE", "The store, if --store is not given.")
        roff.item("NO_COLOR", "If set, output has no colours.")
    }
}
