import TestSupport

/// What a document shows of a terminal: lines that begin with `$ `, and what each prints.
struct Transcript {
    struct Entry: Equatable {
        let command: String
        let output: [String]
    }
    let entries: [Entry]

    /// The entries of all blocks of a Markdown document that are marked as `console`.
    init(markdown: String) {
        var entries: [Entry] = []
        var (inside, command, output) = (false, nil as String?, [] as [String])
        func finish() {
            if let shown = command { entries.append(Entry(command: shown, output: output)) }
            (command, output) = (nil, [])
        }
        for line in markdown.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                finish()
                inside = line == "```console"
            } else if inside, line.hasPrefix("$ ") {
                finish()
                command = String(line.dropFirst(2))
            } else if inside {
                output.append(String(line))
            }
        }
        self.entries = entries
    }

    /// Runs the commands one after the other in a directory, and gives what they really print.
    func replayed(in directory: String) throws -> [Entry] {
        try entries.map { entry in
            let ended = try Project.run(["bash", "-c", "{ \(entry.command); } 2>&1"], in: directory)
            let lines = ended.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            return Entry(command: entry.command, output: lines.last == "" ? lines.dropLast() : lines)
        }
    }

    /// Replaces what differs from one run to the next; everything else is compared as it is.
    ///
    /// - times of the clock (`2026-11-20T10:00:00Z`), and durations (`in 41 ms`)
    /// - digests, and with them the name of a generation (`2.0.0+0e830731`): SQLite writes its version into its files
    /// - the size of a bundle, which depends on the version of zstd, and what the disk needs for it and has
    /// - the directory in which it all runs
    static func stable(_ line: String, directory: String) -> String {
        line.replacing(directory, with: "DIRECTORY")
            .replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/, with: "TIME")
            .replacing(/in [0-9.]+ m?s\b/, with: "in DURATION")
            .replacing(/\+[0-9a-f]{8}\b/, with: "+DIGEST")
            .replacing(/sha256 [0-9a-f]{8}/, with: "sha256 DIGEST")
            .replacing(/bundle [0-9.]+ [KM]?i?B/, with: "bundle SIZE")
            .replacing(/\.tar\.zst  [0-9.]+ [KM]?i?B for/, with: ".tar.zst  SIZE for")
            .replacing(/needs [0-9.]+ [KM]iB, [0-9.]+ [KMGTP]iB free/, with: "needs SIZE, SPACE free")
    }
}
