import MoultBasics

/// A shell script, divided into commands of `moult`, which can run in this process, and the others.
package struct Script {
    enum Part {
        case moult([String])
        case shell(String)
    }

    let parts: [Part]

    /// Returns nil if the script must be run by a shell as a whole, because its lines depend on each other.
    package init?(_ text: String) {
        let words = text.split { " \n;&|({".contains($0) }
        guard !["<<", "$!", "$?", "$("].contains(where: text.contains),
            !words.contains(where: { Self.lasting.contains($0) })
        else { return nil }
        var parts: [Part] = []
        var others: [String] = []
        func end() {
            if !others.isEmpty { parts.append(.shell(others.joined(separator: "\n"))) }
            others = []
        }
        for line in Self.lines(text) {
            guard let first = line.split(separator: " ", maxSplits: 1).first.map(String.init) else { continue }
            if first == "moult", let words = Self.words(line), InProcess.accepts(Array(words.dropFirst())) {
                end()
                parts.append(.moult(Array(words.dropFirst())))
            } else if Self.independent.contains(first), Self.isComplete(line) {
                others.append(line)
            } else {
                return nil
            }
        }
        end()
        guard parts.contains(where: { if case .moult = $0 { true } else { false } }) else { return nil }
        self.parts = parts
    }

    /// The programs whose lines change nothing that the shell needs for the next line.
    private static let independent: Set = [
        "moult", "cat", "chmod", "cksum", "cmp", "cp", "dd", "diff", "echo", "find", "grep", "head", "jq", "ln", "ls",
        "mkdir", "mv",
        "printf", "rm",
        "sed", "sha256sum", "sort", "sqlite3", "stat", "tail", "tar", "test", "touch", "tr", "truncate", "wc",
    ]

    /// Words of a shell that change what follows.
    private static let lasting: Set<Substring> = ["cd", "exec", "export", "set", "trap", "ulimit", "umask"]

    private static func lines(_ text: String) -> [String] {
        var lines: [String] = []
        var continued = ""
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            var line = line.drop { $0 == " " }
            while line.last == " " { line.removeLast() }
            if line.hasSuffix("\\") {
                continued += line.dropLast() + " "
            } else {
                lines.append(continued + line)
                continued = ""
            }
        }
        return lines
    }

    /// Returns whether the quotes of a line end in it, and it leaves no process behind.
    private static func isComplete(_ line: String) -> Bool {
        guard !line.hasSuffix("&"), !line.contains("& ") || line.contains("&& ") else { return false }
        var quote: Character?
        for character in line where character == "'" || character == "\"" {
            if quote == nil { quote = character } else if quote == character { quote = nil }
        }
        return quote == nil && !line.hasSuffix("|") && !line.hasSuffix("{") && !line.hasSuffix("(")
    }

    /// Returns the words of a line in which nothing has a meaning for the shell but quotes; nil for other lines.
    private static func words(_ line: String) -> [String]? {
        var words: [String] = []
        var word: String?
        var quote: Character?
        for character in line {
            if let open = quote {
                if character == open {
                    quote = nil
                } else if open == "\"", "$`\\!".contains(character) {
                    return nil
                } else {
                    word = (word ?? "") + String(character)
                }
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character == " " {
                if let ended = word { words.append(ended) }
                word = nil
            } else if "$`\\;&|<>()*?[]{}~#!".contains(character) {
                return nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        guard quote == nil else { return nil }
        if let word { words.append(word) }
        return words
    }
}
