internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

enum Format: Sendable {
    case text
    case json
}

/// The output of a verb: results to stdout in the requested format, everything else to stderr.
struct Output: Sendable {
    let console: Console
    var format = Format.text
    var isQuiet = false
    var isVerbose = false
    /// Adds the store to a command that is printed.
    var complete: @Sendable (Advice.Command) -> Advice.Command = { $0 }

    /// Whether the user can be asked a question.
    var isDialog: Bool { StandardInput.isTerminal && format == .text && !isQuiet }

    /// Returns the advice with the store in its commands.
    func completed(_ advice: Advice) -> Advice { advice.completing(complete) }

    /// Prints the result. The console buffers it until the verb ends.
    func print(_ report: some Report, evenIfQuiet: Bool = false) {
        print(json: report.json, evenIfQuiet: evenIfQuiet) { report.write(to: &$0) }
    }

    /// Prints a result that has no `Report` type, because only a single verb prints it.
    func print(json: @autoclosure () -> JSON, evenIfQuiet: Bool = false, _ write: (inout Page) -> Void) {
        guard !isQuiet || evenIfQuiet else { return }
        switch format {
        case .text:
            var page = Page(for: console.out, completing: complete)
            write(&page)
            console.write(page.text)
        case .json:
            // A single line per object, unless stdout is a terminal.
            let json = Self.numbered(json())
            console.write(console.out.isTerminal ? json.pretty : json.line + "\n")
        }
    }

    /// Prints a result that is a list, which may be long. `next` returns the elements in batches, then an empty batch, so that
    /// only one batch is in memory. `rest` returns the members that follow the list in JSON.
    func list<Part>(
        _ name: String, next: () throws -> [Part], json: (Part) -> JSON,
        rest: () -> KeyValuePairs<String, (any JSONValue)?>, write: ([Part], inout Page) -> Void
    ) throws {
        var batch = try next()
        var page = Page(for: console.out)
        if format == .json, !console.out.isTerminal, !isQuiet { console.write("{\"format\":1,\"\(name)\":[") }
        var (all, isFirst): ([JSON], Bool) = ([], true)
        repeat {
            if isQuiet {
            } else if format == .text {
                page = Page(for: console.out, completing: complete)
                write(batch, &page)
                console.write(page.text)
            } else if console.out.isTerminal {
                all += batch.map(json)
            } else {
                for part in batch {
                    console.write((isFirst ? "" : ",") + json(part).line)
                    isFirst = false
                }
            }
            batch = batch.isEmpty ? [] : try next()
        } while !batch.isEmpty
        guard format == .json, !isQuiet else { return }
        let members = JSON.record(rest()).members ?? []
        if console.out.isTerminal {
            console.write(Self.numbered(.object([JSON.Member(name, .array(all))] + members)).pretty)
        } else {
            let end = members.map { ",\(JSON.string($0.name).line):\($0.value.line)" }.joined()
            console.write("]\(end)}\n")
        }
    }

    /// Prints part of a result for other programs, byte for byte; on a terminal, control characters are escaped.
    func data(_ bytes: [UInt8]) {
        guard console.out.isTerminal else { return console.write(bytes) }
        var lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        for line in lines { console.write(StyledText(String(line)).rendered(for: console.out) + "\n") }
    }

    func flush() { console.flush() }

    /// Writes lines of a result immediately, because more follow later; in JSON, events carry the same information.
    func lines(_ write: (inout Page) -> Void) {
        guard !isQuiet, format == .text else { return }
        var page = Page(for: console.out, completing: complete)
        write(&page)
        console.write(page.text)
        console.flush()
    }

    /// Writes an event of a long verb immediately, as a line of JSON; in text mode the progress bar shows it.
    func event(_ name: String, _ members: KeyValuePairs<String, (any JSONValue)?> = [:]) {
        guard format == .json, !isQuiet else { return }
        let event = JSON.object([JSON.Member("event", .string(name))] + (JSON.record(members).members ?? []))
        console.write(Self.numbered(event).line + "\n")
        console.flush()
    }

    /// Prints a remark that is not part of the result.
    func note(_ text: StyledText) {
        guard !isQuiet, format == .text else { return }
        diagnose("moult: \(text)")
    }

    /// Prints the output of a running script, without a prefix.
    func say(lines bytes: [UInt8]) {
        guard !isQuiet, format == .text else { return }
        let text = bytes.last == 0x0A ? bytes.dropLast() : bytes[...]
        for line in text.split(separator: 0x0A, omittingEmptySubsequences: false) {
            let text = StyledText(String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self))
            console.diagnose(text.rendered(for: console.err) + "\n")
        }
    }

    /// Prints a problem that does not stop the verb.
    func warn(_ text: Advice) {
        switch format {
        case .text: diagnose("moult: \("warning:", .warning) \(text)")
        case .json:
            let event: JSON = .record(["event": "warning", "message": text.completing(complete).description])
            console.write(Self.numbered(event).line + "\n")
            console.flush()
        }
    }

    /// Prints a warning that is not about the result on standard error, in every format.
    func remark(_ text: Advice) { diagnose("moult: \("warning:", .warning) \(text)") }

    private func diagnose(_ text: StyledText) {
        var page = Page(for: console.errNow, completing: complete)
        page.diagnostic(text)
        console.diagnose(page.text)
    }

    func report(_ error: any Error) {
        let report = ErrorReport(error, isVerbose: isVerbose)
        switch format {
        case .text: console.diagnose(report.text(for: console.errNow))
        case .json: console.write(Self.numbered(report.json).line + "\n")
        }
    }

    /// Adds the version number of the JSON format to the object.
    static func numbered(_ json: JSON) -> JSON {
        .object([JSON.Member("format", 1)] + (json.members ?? []).filter { $0.name != "format" })
    }
}

enum OutputFile {
    /// Creates or replaces the file. An existing file of this user keeps its mode; a new one gets `mode` without the permissions in
    /// the umask, and so does one that replaces a file of another user, who may have created it with a mode that lets anyone write.
    static func write(_ bytes: [UInt8], to path: String, mode: UInt32 = 0o666) throws {
        let directory = try directory(of: path)
        let facts = try Files.factsThroughLinks(path)
        let before = facts.flatMap { $0.owner == geteuid() ? $0.mode & 0o777 : nil }
        try withExtendedLifetime(directory) {
            try Files.replace(path, with: bytes, mode: before ?? mode & ~(Permission.umask ?? 0o077))
        }
    }

    /// Opens the directory of the file, which keeps its path valid until the object is released. The check comes first, because
    /// a later error would name a temporary file.
    static func directory(of path: String) throws -> PinnedDirectory {
        try requireDirectory(of: path)
        return try PinnedDirectory.output(Files.directory(of: path))
    }

    /// Throws if the directory of the file is missing or not writable.
    static func requireDirectory(of path: String) throws {
        let directory = Files.directory(of: path)
        guard try Files.factsThroughLinks(directory)?.kind != .directory else {
            return try Permission.name(path).require("cannot write \(path)")
        }
        throw MoultError(
            .output, what: "cannot write \(path)", why: "no directory \(directory)",
            now: "Create the directory first, or choose another file.")
    }
}
