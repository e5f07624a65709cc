internal import MoultBasics

extension MoultError {
    /// The same error with the store in the commands that it advises: where they will be run, there may be none or another.
    ///
    /// Errors come from rooms that do not know the command line, so a command is found by how advice is written: behind a
    /// colon, up to a comma, a full stop or the end.
    func naming(store words: [String], in verbs: Set<String>) -> MoultError {
        guard !words.isEmpty else { return self }
        return advising { command in
            verbs.contains(command.prefix { $0 != " " }.description) ? "\(command) \(shellLine(words))" : command
        }
    }

    /// The same error with what the command line named, in commands that only add an option to it.
    func repeating(_ line: ParsedLine, commands: [Command]) -> MoultError {
        advising { command in
            let words = command.split(separator: " ").map(String.init)
            if words.contains("--create"), words.contains(ApplyVerb.release.name),
                let release = line.arguments[ApplyVerb.release.name]?.first
            {
                return command.replacing(ApplyVerb.release.name, with: shellLine([Self.shown(release)]))
            }
            guard let verb = words.first, words.count > 1, verb == line.command?.name || line.isPlanOf(verb),
                // A command that names something itself is complete.
                let advised = try? LineParser.parse(words, commands: commands), advised.arguments.isEmpty
            else { return command }
            let repeated = line.words(for: advised).map(Self.shown)
            return repeated.isEmpty ? command : "\(verb) \(shellLine(repeated)) \(command.dropFirst(verb.count + 1))"
        }
    }

    /// A URL may have a password in it.
    private static func shown(_ word: String) -> String { word.contains("://") ? "\(Address(word))" : word }

    /// The same error with each command of its advice, from the verb on, as `body` gives it.
    private func advising(_ body: (String) -> String) -> MoultError {
        guard let now else { return self }
        var changed = self
        let parts = now.split(separator: ": moult ", omittingEmptySubsequences: false)
        changed.now =
            ([String(parts[0])]
            + parts.dropFirst().map { part in
                let found = [", ", ". "].compactMap { part.firstRange(of: $0)?.lowerBound }.min()
                let end = found ?? (part.last == "." ? part.index(before: part.endIndex) : part.endIndex)
                return body(String(part[..<end])) + part[end...]
            })
            .joined(separator: ": moult ")
        return changed
    }
}

extension ParsedLine {
    /// What is planned, or found in a feed, is applied with the same words.
    fileprivate func isPlanOf(_ verb: String) -> Bool {
        verb == "apply" && ["plan", "check"].contains(command?.name)
    }

    /// The arguments and options of this line that the advised command has, too, and does not give itself. The store is
    /// named elsewhere, and how results are printed is no part of what they are.
    fileprivate func words(for advised: ParsedLine) -> [String] {
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
                words += new.flatMap { ["--\(option.name)", $0] }
            }
        }
        return words
    }
}
