/// A completion script for zsh: a function for a directory in `fpath` that can also be sourced.
package struct ZshCompletions {
    private let commands: [Command]

    package init(commands: [Command]) { self.commands = commands }

    package var script: String {
        """
        #compdef moult
        # zsh completion of moult; made by: moult completions zsh
        _moult() {
            local context state state_descr line
            typeset -A opt_args
            _arguments -C -A '-*' \\
        \(lines(Option.beforeVerb.map(specification), indent: 8)) \\
                '1:verb:->verb' '*::argument:->argument' && return
            case $state in
            verb)
                local -a verbs=(
        \(commands.map { "            " + "\($0.name):\($0.summary)".shellQuoted }.joined(separator: "\n"))
                )
                _describe -t verbs verb verbs ;;
            argument)
                case $words[1] in
        \(commands.map(branch).joined(separator: "\n"))
                esac ;;
            esac
        }
        # The names in the current store.
        _moult_names() {
            local store=${opt_args[--store]:-${opt_args[-s]}}
            # Backslashes are doubled there.
            store=${store//'\\\\'/'\\'}
            store=${(Q)store}
            local -a names=(${(f)"$(moult completions ${@[-1]} ${store:+--store} ${store:+${~store}} 2> /dev/null)"})
            compadd -a names
        }
        if [[ $funcstack[1] == _moult ]]; then _moult "$@"; else compdef _moult moult; fi

        """
    }

    private func branch(_ command: Command) -> String {
        let arguments = command.arguments.enumerated().map { place, argument -> String in
            let position =
                switch argument.presence {
                case .required: "\(place + 1):"
                case .optional: "\(place + 1)::"
                case .repeated: "*:"
                }
            return "\(position)\(escaped(argument.name)):\(action(argument.value))".shellQuoted
        }
        return """
                    \(command.name)) _arguments \\
            \(lines(command.options.map(specification) + arguments, indent: 16)) ;;
            """
    }

    /// `'(-q --quiet)'{-q,--quiet}'[what it does]'`
    private func specification(_ option: Option) -> String {
        var tail = "[\(escaped(option.summary))]"
        if let value = option.value { tail += ":\(escaped(value.placeholder)):\(action(value))" }
        let long = "--\(option.name)" + (option.value == nil ? "" : "=")
        let many = option.repeats ? "*" : ""
        guard let letter = option.letter else { return "\(many)\(long)\(tail)".shellQuoted }
        let short = "-\(letter)" + (option.value == nil ? "" : "+")
        let others = option.repeats ? "*" : "(\(option.spellings.joined(separator: " ")))"
        return "'\(others)'{\(short),\(long)}\(tail.shellQuoted)"
    }

    private func action(_ value: ArgumentType) -> String {
        switch value.completion {
        case .nothing: ""
        case .files: "_files"
        case .directories: "_directories"
        case .store(let names): "_moult_names \(names)"
        case .words(let words): "(\(words.joined(separator: " ")))"
        }
    }

    private func escaped(_ text: String) -> String {
        text.reduce(into: "") { $0 += "[]:\\".contains($1) ? "\\\($1)" : "\($1)" }
    }

    private func lines(_ items: [String], indent: Int) -> String {
        items.map { String(repeating: " ", count: indent) + $0 }.joined(separator: " \\\n")
    }
}
