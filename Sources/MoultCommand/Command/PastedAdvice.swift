internal import MoultBasics

extension MoultError {
    /// Returns the same error with `--store` added to the commands it advises, which may be run in another directory.
    ///
    /// Errors come from modules that do not know the command line, so a command is recognized by the form of the advice; see
    /// `AdvisedCommands`.
    func naming(store words: [String], in verbs: Set<String>) -> MoultError {
        var changed = self
        changed.now = now.map { AdvisedCommands.naming(store: words, in: verbs, $0) }
        return changed
    }

    /// Returns the same error, with the source of the path if that is not a store and comes from the environment.
    func namingVariable(isUsed: Bool) -> MoultError {
        guard isUsed, code == .store, what.hasSuffix(" is not a store"), let why else { return self }
        var changed = self
        changed.why = "\(why), and MOULT_STORE names this directory"
        return changed
    }

    /// Returns the same error, with the arguments of this command line added to each advised command that has only options.
    func repeating(_ line: ParsedLine, commands: [Command]) -> MoultError {
        advising { command in
            let words = AdvisedCommands.words(of: command).map(String.init)
            if words.contains("--create"), words.contains(ApplyVerb.release.name),
                let release = line.arguments[ApplyVerb.release.name]?.first
            {
                let path = shellLine([pastedPath(Self.shown(release))])
                return words.map { $0 == ApplyVerb.release.name ? path : $0 }.joined(separator: " ")
            }
            guard let verb = words.first, words.count > 1, verb == line.command?.name || line.isPlanOf(verb),
                // A command that has arguments is complete.
                let advised = try? LineParser.parse(words, commands: commands), advised.arguments.isEmpty,
                // So is one with another source of the release.
                !advised.has(FeedOptions.feed), !advised.has(ApplyVerb.plan)
            else { return command }
            let repeated = line.words(for: advised).map(Self.shown)
            return repeated.isEmpty ? command : "\(verb) \(shellLine(repeated)) \(command.dropFirst(verb.count + 1))"
        }
    }

    /// Returns a word without the password that a URL may contain.
    private static func shown(_ word: String) -> String {
        word.contains("://") ? "\(Address(word))" : word
    }

    /// Returns the same error with each advised command, from the verb on, replaced by the result of `body`.
    private func advising(_ body: (String) -> String) -> MoultError {
        var changed = self
        changed.now = now.map { AdvisedCommands.replaced(in: $0) { "moult \(body($0))" } }
        return changed
    }
}

extension AdvisedCommands {
    /// Returns the advice with `--store` added to the commands with these verbs.
    static func naming(store words: [String], in verbs: Set<String>, _ advice: String) -> String {
        guard !words.isEmpty else { return advice }
        return replaced(in: advice) { command in
            let isOfStore = verbs.contains(command.prefix { $0 != " " }.description)
            return "moult \(isOfStore ? "\(command) \(shellLine(words))" : command)"
        }
    }
}

extension ParsedLine {
    /// Returns whether `verb`, with the same arguments, installs the release that this line's verb plans or finds.
    fileprivate func isPlanOf(_ verb: String) -> Bool {
        verb == "apply" && ["plan", "check"].contains(command?.name)
    }

    /// Returns the arguments and options of this line that the advised command also accepts and does not set itself. The store
    /// is added elsewhere, and output options do not matter.
    fileprivate func words(for advised: ParsedLine) -> [String] {
        guard let command, let target = advised.command else { return [] }
        var words: [String] = []
        for argument in command.arguments where target.arguments.contains(where: { $0.name == argument.name }) {
            words += (arguments[argument.name] ?? []).map(pastedPath)
        }
        for option in command.ownOptions
        where has(option) && target.ownOptions.contains(where: { $0.name == option.name }) {
            let given = options[option.name] ?? []
            if option.value == nil {
                if !advised.has(option) { words.append("--\(option.name)") }
            } else if !advised.has(option) || option.repeats {
                let new = given.filter { !(advised.options[option.name] ?? []).contains($0) }
                words += new.flatMap { ["--\(option.name)", $0] }
            }
        }
        return words
    }
}
