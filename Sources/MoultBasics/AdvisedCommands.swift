/// Finds the `moult` commands in the advice of an error.
///
/// A command starts after a colon, and ends before a comma or a full stop that a space follows, before a final full stop, or at
/// the end of the text. A comma or a full stop in quotes belongs to the command.
package enum AdvisedCommands {
    /// Returns the advice with each command replaced by the result of `body`, which gets the command from the verb on.
    package static func replaced(in advice: String, _ body: (String) -> String) -> String {
        var (result, rest) = ("", Substring(advice))
        while let start = rest.firstRange(of: ": moult ") {
            let command = rest[start.upperBound...]
            let end = end(of: command)
            result += rest[..<start.lowerBound] + ": " + body(String(command[..<end]))
            rest = command[end...]
        }
        return result + rest
    }

    private static func end(of command: Substring) -> String.Index {
        var (index, isQuoted) = (command.startIndex, false)
        while index < command.endIndex {
            let next = command.index(after: index)
            switch command[index] {
            case "'": isQuoted.toggle()
            case "\\" where !isQuoted && next < command.endIndex:
                index = command.index(after: next)
                continue
            case ",", ".":
                if !isQuoted, next == command.endIndex ? command[index] == "." : command[next] == " " { return index }
            default: break
            }
            index = next
        }
        return command.endIndex
    }
}
