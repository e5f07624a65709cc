extension Command {
    /// Every verb, in the order of the overview.
    package static let all: [Command] = [
        HelpVerb.command,
        CompletionsVerb.command,
    ]
}
