/// Finds the commands in the advice of an error.
///
/// A command starts after a colon with the name of a program, and ends before a comma or a full stop that a space follows,
/// before a final full stop, or at the end of the text. A comma or a full stop in quotes belongs to the command.
package enum AdvisedCommands {
    /// Returns the advice with each command replaced by the result of `body`, which gets the command from the verb on.
    package static func replaced(in advice: String, _ body: (String) -> String) -> String {
        var (result, rest) = ("", advice.startIndex)
        for range in ranges(in: advice, of: [moult]) {
            result += advice[rest..<range.lowerBound] + body(String(advice[range].dropFirst(moult.count + 1)))
            rest = range.upperBound
        }
        return result + advice[rest...]
    }

    private static let moult = "moult"

    /// The programs of commands that are advised.
    package static let programs = [
        moult, "sudo", "mv", "cp", "rm", "ln", "ls", "find", "mkdir", "chmod", "chown", "mount", "kill", "sqlite3",
        "systemctl",
    ]

    /// Returns where the commands of these programs are.
    package static func ranges(in advice: String, of programs: [String] = programs) -> [Range<String.Index>] {
        var (ranges, rest) = ([Range<String.Index>](), advice[...])
        while let colon = rest.firstRange(of: ": ") {
            rest = rest[colon.upperBound...]
            guard programs.contains(where: { rest.hasPrefix("\($0) ") }) else { continue }
            let end = end(of: rest)
            ranges.append(rest.startIndex..<end)
            rest = rest[end...]
        }
        return ranges
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
