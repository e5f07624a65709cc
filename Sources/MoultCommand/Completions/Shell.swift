/// The shells that completions can be made for.
enum Shell: String, CaseIterable, Sendable {
    case bash, zsh, fish

    /// The script that teaches the shell to complete these verbs.
    func script(for commands: [Command]) -> String {
        switch self {
        case .bash: BashCompletions(commands: commands).script
        case .zsh: ZshCompletions(commands: commands).script
        case .fish: FishCompletions(commands: commands).script
        }
    }
}
