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
        moult, "sudo", "mv", "cp", "rm", "ln", "ls", "find", "mkdir", "chmod", "chown", "chgrp", "install", "mount",
        "kill", "sqlite3", "systemctl", "bsdtar", "iconv",
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
        let scalars = command.unicodeScalars
        var quotes = ShellQuotes()
        for index in scalars.indices {
            let next = scalars.index(after: index)
            if [",", "."].contains(scalars[index]), !quotes.isOpen,
                next == scalars.endIndex ? scalars[index] == "." : scalars[next] == " "
            {
                return index
            }
            quotes.read(scalars[index])
        }
        return command.endIndex
    }

    /// Returns the words of a command as they are written, with their quotes.
    package static func words(of command: String) -> [Substring] {
        let scalars = command.unicodeScalars
        var (words, start, quotes) = ([Substring](), scalars.startIndex, ShellQuotes())
        for index in scalars.indices {
            if scalars[index] == " ", !quotes.isOpen {
                words.append(command[start..<index])
                start = scalars.index(after: index)
            }
            quotes.read(scalars[index])
        }
        return (words + [command[start...]]).filter { !$0.isEmpty }
    }

    /// Returns the text with the parts outside of commands replaced by the result of `body`.
    package static func replacingProse(in advice: String, _ body: (String) -> String) -> String {
        var (result, rest) = ("", advice.startIndex)
        for range in ranges(in: advice) {
            result += body(String(advice[rest..<range.lowerBound])) + advice[range]
            rest = range.upperBound
        }
        return result + body(String(advice[rest...]))
    }
}

/// Follows the quotes of a command that `shellLine` has written: `'...'`, `$'...'` and `\'`.
private struct ShellQuotes {
    private enum Kind { case none, single, ansiC }
    private var kind = Kind.none
    private var isEscaped = false
    private var last: Unicode.Scalar?

    /// Whether the next character is in quotes.
    var isOpen: Bool { kind != .none || isEscaped }

    mutating func read(_ scalar: Unicode.Scalar) {
        defer { last = scalar }
        if isEscaped { return isEscaped = false }
        switch (kind, scalar) {
        case (.none, "'"): kind = last == "$" ? .ansiC : .single
        case (.single, "'"), (.ansiC, "'"): kind = .none
        case (.none, "\\"), (.ansiC, "\\"): isEscaped = true
        default: break
        }
    }
}
