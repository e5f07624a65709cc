internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultSandbox
internal import StepKit
internal import Synchronization

extension Call {
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

    /// Opens the subject that an argument specifies: a store, or a file of any kind that contains databases.
    func subject(_ path: String) throws -> Subject {
        if try Files.factsThroughLinks(path)?.kind == .directory {
            try check(path)
            return try installed(StoreLayout(root: path), path)
        }
        let bar = progressBar()
        defer { bar.end() }
        return try Subject.open(path) { done, total in
            try Interruption.check()
            bar.show(Progress("unpack \(Files.name(of: path))", done: done, of: total))
        }
    }

    func installedSubject() throws -> Subject { try installed(layout(), store()) }

    private func installed(_ layout: StoreLayout, _ path: String) throws -> Subject {
        guard try Files.facts(layout.settings) != nil else {
            guard try Files.factsThroughLinks(path) != nil else {
                throw MoultError(.store, what: "no store at \(path)", why: "no such directory", now: Subject.kinds)
            }
            throw MoultError(
                .store, what: "\(path) is a directory but not a store", why: "\(layout.settings) does not exist",
                now: Subject.kinds)
        }
        guard let lease = try Lease.take(layout) else {
            throw MoultError(
                .store, what: "nothing is installed in \(layout.root)", why: "no release has been installed yet",
                now: "Install one: \(moult: "apply", "RELEASE")")
        }
        let store = StoreSnapshot(layout)
        let generation = try store.generation(lease.generation)
        let assessment = try Assessment(of: generation, in: store)
        let parts = try generation.manifest.databases.map { database in
            func ifThere(_ path: String) throws -> String? {
                try Files.factsThroughLinks(path)?.kind == .file ? path : nil
            }
            if database.kind.isSealed {
                return Subject.Part(
                    name: database.name, path: try ifThere(generation.path(database.member)), declared: database)
            }
            return Subject.Part(
                name: database.name, path: try ifThere(store.place(of: database)), declared: database,
                fault: try assessment.state(of: database, .glance).fault?.what)
        }
        return Subject(
            .store, path, manifest: generation.manifest, bytes: generation.bytes, parts: parts, keeping: lease)
    }
}

extension Interruption {
    /// Throws if the user or the system asked the process to end.
    static func check(_ what: String = "stopped") throws {
        guard isRequested else { return }
        throw MoultError(.interrupted, what: what, why: name.map { "moult received \($0)" })
    }

    /// Runs a long operation. After a request to stop, any error is reported as an interruption, because stopped code fails in
    /// various ways.
    static func reporting<Result>(_ what: String, _ body: () throws -> Result) throws -> Result {
        do { return try body() } catch {
            try check(what)
            throw error
        }
    }
}
