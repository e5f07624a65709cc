internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultRows
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// `moult delta`: builds the patch between two databases, to show its size.
enum DeltaVerb {
    static let old = Argument(.file("OLD"), "A database, a bundle or a manifest")
    static let new = Argument(.file("NEW"), "The newer file, which the patch produces")
    static let output = Option(
        "output", letter: "o", value: .file(), required: "the patch is written to this file", "The patch file to write")
    static let database = Option(
        "database", value: .text("NAME"), "The database, if more than one changed between the releases")

    static let memory = Option(
        "memory", value: .number("MIB", in: PatchMaker.minMemory >> 20...1 << 20),
        "Maximum memory in addition to the two files (default: 256, plus 100 for each core)")

    static let command = Command(
        "delta", .publishers, "create a patch from one database to another",
        discussion: [
            """
            The patch is verified by applying it. `moult pack` makes the patches of a release; \
            stores use them automatically.
            """
        ], arguments: [old, new], options: [output, database, memory], usesStore: false,
        examples: [
            "How large would a patch be?": "moult delta food-old.db food-new.db -o food.patch",
            "For one database of two releases:": "moult delta r/f-1.0.0.json r/f-1.1.0.json -o f.patch --database food",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let path = try call.required(output)
        let directory = try OutputFile.directory(of: path)
        defer { withExtendedLifetime(directory) {} }
        try refuseOther(path)
        Interruption.watch()
        let before = try call.subject(call.required(old))
        let after = try call.subject(call.required(new))
        let (base, result) = try pair(before, after, call)
        let bar = call.progressBar()
        let temporary = Files.staged(path)
        try Files.remove(temporary)
        let threads = Threads.cores
        let (made, old, new): (Manifest.Content, Manifest.Content, Manifest.Content)
        do {
            // The patch is made from copies, because a program may truncate the files, and mapped pages beyond the end of a file
            // cannot be read.
            let copies = ["\(temporary).old", "\(temporary).new"]
            for copy in copies { try Files.remove(copy) }
            // The next run with this output removes a copy that stays.
            defer { for copy in copies { try? Files.remove(copy) } }
            for file in [base, result] { try DatabaseHeader.requireNoExcess(at: file) }
            try whileUnchanged([base, result]) {
                for (file, copy) in zip([base, result], copies) {
                    try stopping { try Files.copy(file, to: copy, mode: 0o600) }
                }
            }
            made = try PatchMaker(threads: threads, memory: call.number(memory).map { $0 << 20 }) {
                try Interruption.check()
                bar.show(Progress("patch", done: $0, of: $1))
            }.make(from: copies[0], to: copies[1], as: temporary, mode: mode(before, after))
            (old, new) = try stopping { (try content(copies[0]), try content(copies[1])) }
            try Files.syncFile(temporary)
            try Files.rename(temporary, to: path)
            try Files.syncDirectory(Files.directory(of: path))
        } catch {
            // The first error is the one to report.
            try? Files.remove(temporary)
            throw error
        }
        bar.end()
        let json = JSON.record([
            "patch": path, "size": made.size, "sha256": made.sha256, "base": old.json, "result": new.json,
        ])
        call.output.print(json: json) {
            $0.line(
                "\("+", .added) \(path)  \(ByteCount(made.size)), turns \(ByteCount(old.size)) into \(ByteCount(new.size))"
            )
        }
        return .done
    }

    private static func stopping<R>(_ body: () throws -> R) throws -> R {
        try LongRead.stopping(if: { Interruption.isRequested }, body)
    }

    private static func mode(_ before: Subject, _ after: Subject) throws -> UInt32 {
        let bundles = [before, after].compactMap { subject in
            subject.manifest?.bundle.map { "\(Files.directory(of: subject.path))/\($0.file)" }
        }
        return try Files.mode(ofFileFrom: [before.path, after.path] + bundles)
    }

    /// Refuses to overwrite anything but an older patch, so that a typo cannot destroy a database.
    private static func refuseOther(_ path: String) throws {
        guard let facts = try Files.facts(path) else { return }
        guard try facts.kind == .file && (facts.size == 0 || SeekTable.read(Descriptor(path, .read)) != nil) else {
            throw MoultError(
                .output, what: "cannot write the patch to \(path)", why: "it exists and is not a patch",
                now: "Choose another file name.")
        }
    }

    private static func content(_ path: String) throws -> Manifest.Content {
        Manifest.Content(
            size: try Files.factsThroughLinks(path)?.size ?? 0, sha256: try SHA256.digest(ofFileAt: path).hex)
    }

    /// Throws if a program changes one of the files during `body`: the patch would belong to no commit, and its verification may
    /// have failed for that reason.
    private static func whileUnchanged<Result>(_ paths: [String], _ body: () throws -> Result) throws -> Result {
        let before = try paths.map(Files.factsThroughLinks)
        let result = Swift.Result { try body() }
        for (path, facts) in zip(paths, before) where try Files.factsThroughLinks(path) != facts {
            throw LockFreeReader.changed(path)
        }
        return try result.get()
    }

    private static func pair(_ before: Subject, _ after: Subject, _ call: Call) throws -> (String, String) {
        if [before, after].contains(where: { $0.kind == .store }) {
            throw call.wrongUsage("patches cannot be made from a store", why: "specify databases, bundles or manifests")
        }
        if let name = call.value(database) {
            for subject in [before, after] where subject.part(name) == nil { throw subject.unknown(name) }
        }
        for subject in [before, after] where subject.kind == .database { try refuseOpen(subject.path) }
        let pairs = try pairs(before, after, call)
        if pairs.count == 1, let pair = pairs.first { return (pair.old, pair.new) }
        if pairs.isEmpty {
            throw MoultError(
                .packing, what: "no patch from \(before.path) to \(after.path) is possible",
                why: "no database that is in both has changed",
                now: "To see all differences: \(moult: "diff", before.path, after.path)")
        }
        throw call.wrongUsage(
            "--database is missing",
            why: "several databases have changed: \(pairs.map(\.name).joined(separator: ", "))")
    }

    /// Returns the databases that have changed; with `--database`, only that one, even if it has not.
    private static func pairs(
        _ before: Subject, _ after: Subject, _ call: Call
    ) throws -> [(name: String, old: String, new: String)] {
        // Single databases belong together, whatever their names are.
        if before.parts.count == 1, after.parts.count == 1, let old = before.parts.first?.path,
            let new = after.parts.first
        {
            return new.path.map { [(new.name, old, $0)] } ?? []
        }
        return after.parts.compactMap { part in
            guard let new = part.path, let old = before.part(part.name)?.path,
                call.value(database).map({ $0 == part.name }) ?? true
            else { return nil }
            let same = before.part(part.name)?.declared.map { $0.sha256 == part.declared?.sha256 } ?? false
            return same && !call.has(database) ? nil : (part.name, old, new)
        }
    }

    /// Refuses a database if part of its content, or of its last commit, is in a sidecar.
    private static func refuseOpen(_ path: String) throws {
        let sidecars = try Sidecars.of(path)
        if try sidecars.hasHotJournal() { throw LockFreeReader.hotJournal(path) }
        guard let wal = sidecars.wal, wal.facts.size > 0 else { return }
        throw MoultError(
            .packing, .refused, what: "cannot make a patch from \(path)", why: "part of its content is in \(wal.path)",
            now: "Close the programs that use it, or run: \(run: ["sqlite3", path, "PRAGMA wal_checkpoint(TRUNCATE)"])")
    }
}
