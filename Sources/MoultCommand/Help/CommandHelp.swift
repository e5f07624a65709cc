package import MoultBasics

/// What `moult help VERB` and `moult VERB --help` show.
package struct CommandHelp: Report {
    private let command: Command

    package init(_ command: Command) { self.command = command }

    package func write(to page: inout Page) {
        page.line("\("moult \(command.name)", .heading): \(command.summary)")
        page.line()
        page.line("\("Usage:", .heading) \(command.usage)")
        if !command.discussion.isEmpty {
            page.line()
            page.prose(command.discussion)
        }
        if !command.arguments.isEmpty {
            page.heading("Arguments")
            page.list(command.arguments.map { ("\($0.name)", $0.summary) })
        }
        if !command.ownOptions.isEmpty {
            page.heading("Options")
            page.list(command.ownOptions.map(Self.item))
        }
        page.heading("Common options")
        page.list(command.commonOptions.map(Self.item))
        page.heading("Examples")
        for example in command.examples {
            page.paragraph("\(example.purpose, .dim)", indent: 2)
            page.line("    \(example.line)")
        }
        if !command.exits.isEmpty {
            page.heading("Exit status")
            page.list(command.exits.map { ("\($0.status.rawValue)", $0.meaning) })
        }
        // A verb and a concept may have one name: who asks for it wants both.
        if let topic = Topic.all.first(where: { $0.name == command.name }) {
            page.heading("\(topic.name.prefix(1).uppercased())\(topic.name.dropFirst()), \(topic.summary)")
            page.line()
            page.prose(topic.text)
        }
        page.line()
        page.line("All exit statuses: moult help exit-codes")
    }

    private static func item(_ option: Option) -> (term: StyledText, meaning: String) {
        let letter = option.letter.map { "-\($0), " } ?? "    "
        return ("\(letter)\(option.usage)", option.summary + (option.repeats ? " (may be repeated)" : ""))
    }

    package var json: JSON {
        [
            "name": .string(command.name),
            "summary": .string(command.summary),
            "usage": .string(command.usage),
            "arguments": .array(
                command.arguments.map { argument in
                    [
                        "name": .string(argument.name), "required": .bool(argument.presence == .required),
                        "repeats": .bool(argument.presence == .repeated), "summary": .string(argument.summary),
                    ]
                }),
            "options": .array(
                command.options.map { option in
                    .compact([
                        "name": .string(option.name), "letter": .optional(option.letter.map(String.init)),
                        "value": .optional(option.value?.placeholder), "repeats": .bool(option.repeats),
                        "summary": .string(option.summary),
                    ])
                }),
            "examples": .array(
                command.examples.map { ["purpose": .string($0.purpose), "line": .string($0.line)] }),
        ]
    }
}
