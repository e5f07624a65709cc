internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultSandbox
internal import Synchronization

extension Call {
    /// Compares two subjects with a progress bar, and stops on a signal.
    func compare(
        _ old: Subject, _ new: Subject, only names: [String] = [], _ options: DiffOptions = DiffOptions()
    ) throws -> ReleaseDiff {
        let bar = progressBar()
        defer { bar.end() }
        let count = Mutex(("", 0))
        var options = options
        options.progress = { database, table, rows in
            try Interruption.check()
            let read = count.withLock { count in
                count = count.0 == table ? (table, count.1 + rows) : (table, rows)
                return count.1
            }
            bar.show(Progress("compare \(table) of \(database)", done: read, unit: .items))
        }
        return try ReleaseDiff(from: old, to: new, only: names, options: options)
    }
}

extension Call {
    /// Writes an HTML page. Only an empty file or an older page may be overwritten, so that a typo cannot destroy a database.
    func save(_ html: [UInt8], asPage file: String, mode: UInt32 = 0o666) throws {
        if let facts = try Files.factsThroughLinks(file) {
            guard try facts.kind == .file && (facts.size == 0 || beginsLikeAPage(file)) else {
                throw MoultError(
                    .system, what: "cannot save the page to \(file)", why: "it exists and is not an HTML page",
                    now: "Choose another file name.")
            }
        }
        try OutputFile.write(html, to: file, mode: mode)
        output.note("the page is in \(file)")
    }

    private func beginsLikeAPage(_ path: String) throws -> Bool {
        let file = try Descriptor(path, .read)
        var bytes = [UInt8](repeating: 0, count: 15)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
        return bytes[..<count].elementsEqual("<!DOCTYPE html>".utf8)
    }
}

extension Call {
    /// Runs the verb, or the rest of it, in a separate process, for code that opens untrusted databases.
    ///
    /// `body` runs in that process and passes these databases to `confine`. Afterwards, `collect` runs in this process, with
    /// the scratch directory, in which the other process may have left files.
    func sandboxed(
        _ what: String, collect: (_ scratch: String) throws -> Void = { _ in }, body: () throws -> ExitCode
    ) throws -> ExitCode {
        Interruption.watch()
        let status = try Interruption.reporting("stopped") {
            try SandboxedReexec.carryOut(what, stopSignal: { Interruption.received }, body: collect)
        }
        return try status.map { ExitCode(rawValue: $0) } ?? body()
    }

    /// Restricts a process started by `sandboxed` to reading these databases and little else.
    func confine(to subjects: Subject...) throws {
        try SandboxedReexec.confine(to: subjects.flatMap(\.parts).compactMap(\.path))
    }
}
