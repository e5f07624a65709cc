import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@testable import MoultCommand

/// What each verb prints, and its usual errors: the scripts in `Tests/Golden/texts` print what the files show.
///
/// A line `$ COMMAND` is a command, continued by lines `> `; a line `## ` begins a new directory with the releases of `VerbWorld` in
/// `rel`. The output is indented; `!` marks standard error, and `=` an exit status other than zero. With MOULT_TEXTS=write, the test
/// writes the output into the files instead.
@Suite struct GoldenTextsTests {
    private static let directory = "\(Project.root)/Tests/Golden/texts"
    private static let isWriting = getenv("MOULT_TEXTS").map { String(cString: $0) } == "write"

    private let stable = Stable()

    static func names() -> [String] {
        // Without the directory, the test that every verb has a file fails.
        ((try? Files.list(directory)) ?? []).filter { $0.hasSuffix(".txt") }.sorted()
    }

    @Test func `every verb has a file, which begins with its help`() throws {
        let wrong = try Command.all.map(\.name).filter { verb in
            let text = try Files.read("\(Self.directory)/\(verb).txt", limit: 1 << 24) ?? []
            return !String(decoding: text, as: UTF8.self).hasPrefix("$ moult help \(verb)\n")
        }
        #expect(wrong == [])
    }

    @Test(arguments: names()) func `the commands print the text in the file`(_ name: String) throws {
        let path = "\(Self.directory)/\(name)"
        let text = String(decoding: try Files.read(path, limit: 1 << 24) ?? [], as: UTF8.self)
        let printed = try run(text)
        if Self.isWriting {
            try Files.replace(path, with: Array(printed.utf8), mode: 0o644)
        } else if printed != text {
            let (old, new) = (text.split(separator: "\n"), printed.split(separator: "\n"))
            let at = zip(old, new).enumerated().first { $1.0 != $1.1 }?.offset ?? min(old.count, new.count)
            let command = new.prefix(at + 1).last { $0.hasPrefix("$ ") } ?? ""
            Issue.record("\(name): \(command)\n- \(old.dropFirst(at).first ?? "")\n+ \(new.dropFirst(at).first ?? "")")
        }
    }

    /// Returns the text with the present output of its commands.
    private func run(_ text: String) throws -> String {
        var world = try VerbWorld()
        var lines: [String] = []
        var command: [Substring] = []
        func end() throws {
            guard !command.isEmpty else { return }
            lines += try output(of: command.joined(separator: "\n"), in: world)
            command = []
        }
        for line in text.split(separator: "\n") where "$>#".contains(line.prefix(1)) {
            if line.hasPrefix("> ") {
                command.append(line.dropFirst(2))
            } else {
                try end()
                if line.hasPrefix("## ") {
                    world = try VerbWorld()
                    lines.append("")
                }
                if line.hasPrefix("$ ") { command = [line.dropFirst(2)] }
            }
            lines.append(String(line))
        }
        try end()
        return lines.joined(separator: "\n") + "\n"
    }

    private func output(of command: String, in world: VerbWorld) throws -> [String] {
        // Commands on lines of their own need no shell.
        let divided = command.replacing("; ", with: "\n")
        let ended = try world.run(Script(divided) == nil ? command : divided)
        var lines: [String] = []
        for (mark, text) in [("    ", ended.out), ("  ! ", ended.err)] {
            var rows = try stable.text(text, in: world.scratch.path).split(
                separator: "\n", omittingEmptySubsequences: false)
            if rows.last == "" { rows.removeLast() }
            lines += rows.map { $0.isEmpty ? "" : mark + $0 }
        }
        if ended.status != 0 { lines.append("  = \(ended.status)") }
        return lines
    }
}

/// Replaces what differs between two runs of the same commands.
private struct Stable {
    func text(_ text: String, in directory: String) throws -> String {
        var text = text
        if text.hasPrefix("{"), text.split(separator: "\n").count == 1 {
            // Not all such output is JSON.
            text = (try? JSON(parsing: text, source: "output").pretty) ?? text
        }
        text = text.replacing(try Files.resolved(directory), with: "DIR").replacing(directory, with: "DIR")
        text = text.replacing("\u{1B}", with: "ESC")
        for (pattern, name) in patterns { text = text.replacing(pattern) { "\($0.output.1)\(name)\($0.output.2)" } }
        return text
    }

    /// What comes before a text that varies, what comes after it, and its name.
    private let patterns: [(Regex<(Substring, Substring, Substring)>, String)] = [
        (/()20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z()/, "TIME"),
        (/()\d{14}-[0-9a-f]{8}()/, "TRANSACTION"),
        (/(\+|%2B)[0-9a-f]{8}\b()/, "DIGEST"),
        (/()\b[0-9a-f]{64}\b()/, "DIGEST"),
        (/(sha256[: ]|SHA-256 is |says |content was |is now )[0-9a-f]{8}\b()/, "DIGEST"),
        (/()\b(?:[0-9A-F]{13,16}|[0-9a-f]{16})\b()/, "KEYID"),
        (/()\bR[UW][A-Za-z0-9+\/]{54}=*()/, "KEY"),
        (/\b((?:in|after) )[0-9.]+ m?s\b()/, "DURATION"),
        (/\b((?:process|pid) )\d+(?: \([^)]*\))?()/, "PID"),
        (/(SQLite )3\.[0-9.]+()/, "VERSION"),
        (/("sqlite(?:Source)?": ?")[^"]*(")/, "VERSION"),
        (/("moult": ?"|moult_build_info.*version=")\d+\.\d+\.\d+(")/, "VERSION"),
        (
            /("\w*(?:[mM]illiseconds|microseconds|free|freed|[sS]ize|bytes|Bytes|bundleSizeBefore|needs|age|seconds|inode)": ?)\d+()/,
            "N"
        ),
        (/(modified was |"value": ?")\d{10}\.\d+()/, "MODIFIED"),
        (/("field": ?"size",\s*"value": ?")\d+()/, "N"),
        // The size of a bundle depends on the version of zstd, and that of a record on the directory.
        (/((?:bundle|needs|DIGEST)(?: -> |: | )*)[0-9.]+ (?:[KMG]i)?B\b()/, "SIZE"),
        (/()[0-9.]+ [KMGT]?i?B( (?:would be )?freed| (?:is )?free\b)/, "SIZE"),
        (/(age=)\d+s()/, "AGE"), (/( bytes=)\d+(B)/, "N"),
        (/(moult_\w*(?:_timestamp_seconds|_bytes|duration_seconds|_age\w*)\{.*\} )[0-9.]+()/, "N"),
        (/()(?:^|\n)guard: .*()/, ""), (/("guard": ?")[^"]*(")/, "GUARD"),
        (/(\.tar\.zst +|patches (?:of )?|-> )[0-9.]+ (?:[KMG]i)?B\b()/, "SIZE"),
    ].map { ($0.wordBoundaryKind(.simple), $1) }
}
