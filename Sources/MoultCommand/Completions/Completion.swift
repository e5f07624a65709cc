/// The values that a shell suggests.
enum Completion {
    case nothing
    case files
    case directories
    case words([String])
    /// The names that `moult completions` prints for this word.
    case store(String)
}

extension ArgumentType {
    var completion: Completion {
        switch kind {
        case .text, .number: .nothing
        case .file, .source: .files
        case .directory: .directories
        case .choice(let words): .words(words)
        case .offer(let words): .words(words())
        case .ofStore(let names): .store(names.rawValue)
        }
    }
}

extension [Command] {
    /// The options that take a value, as `VERB:OPTION`; the verb is `*` for those that every verb has.
    var valueOptions: [(spellings: [String], completion: Completion)] {
        let all = Option.beforeVerb.map { ("*", $0) } + flatMap { verb in verb.ownOptions.map { (verb.name, $0) } }
        return all.compactMap { verb, option in
            option.value.map { value in (option.spellings.map { "\(verb):\($0)" }, value.completion) }
        }
    }
}

extension String {
    var shellQuoted: String {
        "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}

enum CompletionShell: String, CaseIterable, Sendable {
    case bash, zsh, fish

    func script(for commands: [Command]) -> String {
        switch self {
        case .bash: BashCompletions(commands: commands).script
        case .zsh: ZshCompletions(commands: commands).script
        case .fish: FishCompletions(commands: commands).script
        }
    }
}
