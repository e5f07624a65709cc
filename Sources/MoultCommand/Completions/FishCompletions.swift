/// A completion script for fish.
package struct FishCompletions {
    private let commands: [Command]

    package init(commands: [Command]) { self.commands = commands }

    package var script: String {
        """
        # fish completion of moult; made by: moult completions fish
        # The verb and the arguments after it that stand before the cursor.
        function __moult_words
            set -l skip no
            set -l verb
            for word in (commandline -opc)[2..]
                if test $skip = yes
                    set skip no
                    continue
                end
                switch "$verb:$word"
                    case \(valueOptions.joined(separator: " "))
                        set skip yes
                    case '*:-*'
                    case '*'
                        test -z "$verb"; and set verb $word
                        echo -- $word
                end
            end
        end
        function __moult_at
            set -l words (__moult_words)
            test (count $words) -eq $argv[2] -a "$words[1]" = "$argv[1]"
        end
        function __moult_verb
            set -l words (__moult_words)
            test "$words[1]" = "$argv[1]"
        end

        # The names in the current store.
        function __moult_names
            set -l store
            set -l words (commandline -opc)
            for index in (seq (count $words))
                switch $words[$index]
                    case --store -s
                        set store --store $words[(math $index + 1)]
                    case '--store=*'
                        set store --store (string replace -- --store= '' $words[$index])
                end
            end
            moult completions $argv[1] $store 2> /dev/null
        end

        complete -c moult -f
        \(lines.joined(separator: "\n"))

        """
    }

    private var lines: [String] {
        Option.beforeVerb.map { rule("__moult_verb ''", $0) }
            + commands.map { "complete -c moult -n \"__moult_at '' 0\" -a \($0.name) -d \($0.summary.shellQuoted)" }
            + commands.flatMap(lines)
    }

    private func lines(_ command: Command) -> [String] {
        command.options.map { rule("__moult_verb \(command.name)", $0) }
            + command.arguments.enumerated().map { place, argument in
                let condition =
                    argument.presence == .repeated
                    ? "__moult_verb \(command.name)" : "__moult_at \(command.name) \(place + 1)"
                return "complete -c moult -n \"\(condition)\"\(offer(argument.value))"
            }
    }

    private func rule(_ condition: String, _ option: Option) -> String {
        "complete -c moult -n \"\(condition)\" -l \(option.name)" + (option.letter.map { " -s \($0)" } ?? "")
            + (option.value.map { " -r" + offer($0) } ?? "") + " -d \(option.summary.shellQuoted)"
    }

    private func offer(_ value: ArgumentType) -> String {
        switch value.completion {
        case .nothing: " -f"
        case .files: " -F"
        case .directories: " -f -a '(__fish_complete_directories)'"
        case .store(let names): " -f -a '(__moult_names \(names))'"
        case .words(let words): " -f -a \(words.joined(separator: " ").shellQuoted)"
        }
    }

    /// Options that take the next word as their value, as patterns over verb and option.
    private var valueOptions: [String] {
        Option.beforeVerb.filter { $0.value != nil }.flatMap(\.spellings).map { "'*:\($0)'" }
            + commands.flatMap { command in
                command.ownOptions.filter { $0.value != nil }.flatMap { option in
                    option.spellings.map { "'\(command.name):\($0)'" }
                }
            }
    }
}
