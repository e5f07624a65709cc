internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultSandbox
internal import Synchronization

extension Call {
    /// Compares two subjects, shows the progress, and stops on a signal.
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
    /// Writes a page, over an older page at most: a slip of the pen must not cost a database.
    func save(_ html: [UInt8], asPage file: String) throws {
        if let facts = try Files.factsThroughLinks(file) {
            guard try facts.kind == .file && (facts.size == 0 || beginsLikeAPage(file)) else {
                throw MoultError(
                    .system, what: "cannot save the page to \(file)", why: "a file exists that is not such a page",
                    now: "Choose another file.")
            }
        }
        try OutputFile.write(html, to: file)
    }

    private func beginsLikeAPage(_ path: String) throws -> Bool {
        let file = try Descriptor(path, .read)
        var bytes = [UInt8](repeating: 0, count: 15)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
        return bytes[..<count].elementsEqual("<!DOCTYPE html>".utf8)
    }
}

extension Call {
    /// Runs the verb, or the part of it that is left, in its own process: for what opens databases that may mean harm.
    ///
    /// `body` is called in that process, and says by `confine` which databases those are. `collect` is called in this one
    /// afterwards, with the directory where the other could leave files.
    func sandboxed(
        _ what: String, collect: (_ scratch: String) throws -> Void = { _ in }, body: () throws -> ExitCode
    ) throws -> ExitCode {
        Interruption.watch()
        let status = try Interruption.telling("stopped") {
            try SandboxedReexec.carryOut(what, isStopping: { Interruption.isRequested }, body: collect)
        }
        return try status.map { ExitCode(rawValue: $0) } ?? body()
    }

    /// From here on this process, if it is one of its own, reads these databases and little else.
    func confine(to subjects: Subject...) throws {
        try SandboxedReexec.confine(to: subjects.flatMap(\.parts).compactMap(\.path))
    }
}
