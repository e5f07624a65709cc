/// A completion script for bash, without other dependencies.
package struct BashCompletions {
    private let commands: [Command]

    package init(commands: [Command]) { self.commands = commands }

    package var script: String {
        """
        # bash completion of moult; made by: moult completions bash
        _moult() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
            local verb= place=0 index=1 kind=words words= store= option=
            # --store=DIR comes as three words.
            if [[ $current == = ]]; then current=
            elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}
            fi
            while (( index < COMP_CWORD )); do
                case $verb:${COMP_WORDS[index]} in
                    \(valueOptions.map(\.pattern).joined(separator: "|")))
                        option=${COMP_WORDS[index]}
                        [[ ${COMP_WORDS[index+1]} == = ]] && (( index++ ))
                        (( index++ ))
                        [[ $option == --store || $option == -s ]] && store=${COMP_WORDS[index]/#"~"/$HOME} ;;
                    *:-*) ;;
                    :*) verb=${COMP_WORDS[index]} ;;
                    *) (( place++ )) ;;
                esac
                (( index++ ))
            done
            case $verb:$previous in
        \(cases(valueOptions.map { ($0.pattern, $0.completion) }))
                *)
                    if [[ $current == -* ]]; then
                        case $verb in
        \(cases(optionWords, indent: 16))
                        esac
                    else
                        case $verb:$place in
        \(cases(places, indent: 16))
                        esac
                    fi ;;
            esac
            case $kind in
                file|directory)
                    compopt -o filenames 2> /dev/null
                    mapfile -t COMPREPLY < <(compgen -A "$kind" -- "$current") ;;
                store)
                    words=$(moult completions "$words" ${store:+--store "$store"} 2> /dev/null)
                    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
                *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
            esac
        }
        complete -F _moult moult

        """
    }

    /// Options with a value, as patterns over verb and option.
    private var valueOptions: [(pattern: String, completion: Completion)] {
        let common = Option.beforeVerb.compactMap { option in
            option.value.map { (option.spellings.map { "*:\($0)" }.joined(separator: "|"), $0.completion) }
        }
        return common
            + commands.flatMap { command in
                command.ownOptions.compactMap { option in
                    option.value.map { value in
                        (option.spellings.map { "\(command.name):\($0)" }.joined(separator: "|"), value.completion)
                    }
                }
            }
    }

    private var optionWords: [(String, Completion)] {
        [("''", .words(Option.beforeVerb.flatMap(\.spellings)))]
            + commands.map { ($0.name, .words($0.options.flatMap(\.spellings))) }
    }

    private var places: [(String, Completion)] {
        [(":0", .words(commands.map(\.name)))]
            + commands.flatMap { command in
                command.arguments.enumerated().map { place, argument in
                    ("\(command.name):\(argument.presence == .repeated ? "*" : "\(place)")", argument.value.completion)
                }
            }
    }

    private func cases(_ cases: [(pattern: String, completion: Completion)], indent: Int = 8) -> String {
        cases.map { pattern, completion in
            let action =
                switch completion {
                case .nothing: "kind=nothing"
                case .files: "kind=file"
                case .directories: "kind=directory"
                case .store(let names): "kind=store words=\(names)"
                case .words(let words): "words=\(words.joined(separator: " ").shellQuoted)"
                }
            return String(repeating: " ", count: indent) + "\(pattern)) \(action) ;;"
        }.joined(separator: "\n")
    }
}
