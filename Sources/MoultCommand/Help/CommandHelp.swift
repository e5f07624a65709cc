internal import MoultBasics

/// The text of `moult help VERB` and `moult VERB --help`: examples first, then options, then the details.
struct CommandHelp: Report {
    let command: Command

    func write(to page: inout Page) {
        page.line("\("moult \(command.name)", .heading): \(command.summary)")
        page.line()
        page.line("\("Usage:", .heading) \(command.usage)")
        page.heading("Examples")
        for example in command.examples {
            page.paragraph("\(example.purpose, .dim)", indent: 2)
            page.line("    \(example.line)")
        }
        let arguments = command.arguments.map { (term: StyledText($0.name), meaning: $0.summary) }
        let options = command.ownOptions.map(Self.item)
        if !arguments.isEmpty || !options.isEmpty {
            page.heading(options.isEmpty ? "Arguments" : arguments.isEmpty ? "Options" : "Arguments and options")
            page.list(arguments + options)
        }
        if !command.discussion.isEmpty {
            page.line()
            page.prose(command.discussion)
        }
        page.line()
        if !command.exits.isEmpty {
            let exits = command.exits.map { "\($0.status.rawValue) \($0.meaning)" }.joined(separator: ". ")
            page.paragraph("\("Exit status:", .heading) \(exits). All: moult help exit-codes")
        }
        page.paragraph("\("Common options:", .heading) \(Self.common(command))")
        // A verb and a topic may share a name; the page then explains both.
        if let topic = Topic.all.first(where: { $0.name == command.name }) {
            page.heading("\(topic.name.prefix(1).uppercased())\(topic.name.dropFirst()), \(topic.summary)")
            page.line()
            page.prose(topic.text)
        }
    }

    /// Returns the common options of the verb on one line; `moult help options` explains them.
    private static func common(_ command: Command) -> String {
        command.commonOptions.map(\.term).joined(separator: "; ") + ". See: moult help options"
    }

    private static func item(_ option: Option) -> (term: StyledText, meaning: String) {
        ("\(option.letter == nil ? "    " : "")\(option.term)\(option.repeats ? "..." : "")", option.summary)
    }

    var json: JSON {
        .record([
            "name": command.name, "summary": command.summary, "usage": command.usage,
            "arguments": command.arguments.map { argument in
                JSON.record([
                    "name": argument.name, "required": argument.isRequired, "repeats": argument.repeats,
                    "summary": argument.summary,
                ])
            },
            "options": command.options.map { option in
                JSON.record([
                    "name": option.name, "letter": option.letter.map(String.init), "value": option.value?.placeholder,
                    "required": option.requirement != nil, "repeats": option.repeats, "summary": option.summary,
                ])
            }, "examples": command.examples.map { JSON.record(["purpose": $0.purpose, "line": $0.line]) },
        ])
    }
}
