internal import MoultBasics

extension Advice {
    func completing(_ complete: (Command) -> Command) -> Advice { mapping { .command(complete($0)) } }
}

extension Advice.Command {
    /// Returns the command with `--store` if it has one of these verbs: it may be run in another directory.
    func naming(store words: [String], in verbs: Set<String>) -> Self {
        guard let verb, verbs.contains(verb), !self.words.contains("--store"), !isHelp else { return self }
        return adding(words)
    }

    /// Whether the command shows the help of a verb, which needs neither a store nor arguments.
    fileprivate var isHelp: Bool { words.contains("--\(Option.help.name)") }
}

extension [Command] {
    /// The verbs that take `--store`. `moult init` has the store as an argument instead.
    var takingStore: Set<String> { Set(filter { $0.usesStore && $0.name != "init" }.map(\.name)) }
}

extension MoultError {
    /// Returns the same error with `--store` added to the commands that it advises.
    func naming(store words: [String], in verbs: Set<String>) -> MoultError {
        var changed = self
        changed.now = now?.completing { $0.naming(store: words, in: verbs) }
        return changed
    }

    /// Returns the same error about a directory that is not a store, with the variable that names it, if one does.
    func namingVariable(_ path: String?) -> MoultError {
        guard code == .store, let path, !StoreLocation.isStore(path), let why else { return self }
        var changed = self
        changed.why = "\(why), and MOULT_STORE names this directory"
        return changed
    }

    /// Returns the same error, with the arguments of this command line added to each advised command that has only options.
    func repeating(_ line: ParsedLine, commands: [Command]) -> MoultError {
        var changed = self
        changed.now = now?.completing { line.completing($0, commands) }
        return changed
    }
}

extension ParsedLine {
    /// Returns an advised command with the arguments of this line, if it has only options.
    fileprivate func completing(_ command: Advice.Command, _ commands: [Command]) -> Advice.Command {
        var command = command
        guard let verb = command.verb, !command.isHelp else { return command }
        if command.words.contains("--create"), let release = arguments[ApplyVerb.release.name]?.first {
            command.words = command.words.map { $0 == ApplyVerb.release.name ? Self.shown(release) : $0 }
        }
        guard command.words.count > 2, verb == self.command?.name || isPlanOf(verb),
            // A command that has arguments is complete.
            let advised = try? LineParser.parse(Array(command.words.dropFirst()), commands: commands),
            advised.arguments.isEmpty,
            // So is one with another source of the release.
            !advised.has(FeedOptions.feed), !advised.has(ApplyVerb.plan)
        else { return command }
        command.words.insert(contentsOf: words(for: advised).map(Self.shown), at: 2)
        return command
    }

    /// Returns a word without the password that a URL may contain.
    private static func shown(_ word: String) -> String { word.contains("://") ? "\(Address(word))" : word }

    /// Returns whether `verb`, with the same arguments, installs the release that this line's verb plans or finds.
    private func isPlanOf(_ verb: String) -> Bool { verb == "apply" && ["plan", "check"].contains(command?.name) }

    /// Returns the arguments and options of this line that the advised command also accepts and does not set itself. The store
    /// is added elsewhere, and output options do not matter.
    private func words(for advised: ParsedLine) -> [String] {
        guard let command, let target = advised.command else { return [] }
        var words: [String] = []
        for argument in command.arguments where target.arguments.contains(where: { $0.name == argument.name }) {
            words += arguments[argument.name] ?? []
        }
        for option in command.ownOptions
        where has(option) && target.ownOptions.contains(where: { $0.name == option.name }) {
            let given = options[option.name] ?? []
            if option.value == nil {
                if !advised.has(option) { words.append("--\(option.name)") }
            } else if !advised.has(option) || option.repeats {
                let new = given.filter { !(advised.options[option.name] ?? []).contains($0) }
                words += new.flatMap(option.words)
            }
        }
        return words
    }
}
