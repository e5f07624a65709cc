internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultTrust
internal import StepKit

/// `moult delta`: makes the patch between two databases, to see what it would come to.
enum DeltaVerb {
    static let old = Argument(.file("OLD"), "A database, a bundle or a sealed manifest")
    static let new = Argument(.file("NEW"), "The file that the patch makes of it")
    static let output = Option("output", letter: "o", value: .file(), "Where the patch goes")
    static let database = Option(
        "database", value: .text("NAME"), "The database of the releases, if more than one of them changed")

    static let command = Command(
        "delta", .publishers, "make the patch from one database to another",
        discussion: [
            """
            The patch tells the new file by its differences from the old one; it is proven by being applied. Releases \
            with patches are made by `moult pack --delta-from`, and stores take them by themselves.
            """
        ],
        arguments: [old, new], options: [output, database], usesStore: false,
        examples: [
            .init("What would a patch come to?", "moult delta food-old.db food-new.db -o food.patch"),
            .init(
                "Of one database of two releases:",
                "moult delta r/f-1.0.0.json r/f-1.1.0.json -o f.patch --database food"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        guard let path = call.value(output) else {
            throw call.wrongUsage("--output is missing", why: "the patch goes into a file")
        }
        try refuseOther(path)
        Interruption.watch()
        let before = try call.subject(call.required(old))
        let after = try call.subject(call.required(new))
        let (base, result) = try pair(before, after, call)
        let bar = call.progressBar()
        let temporary = Files.staged(path)
        try Files.remove(temporary)
        let threads = Threads.cores
        let made: Manifest.Content
        do {
            made = try PatchMaking(threads: threads) { done, total in
                try Interruption.check()
                bar.show(Progress("patch", done: done, of: total))
            }.make(from: base, to: result, as: temporary)
            try Files.syncFile(temporary)
            try Files.rename(temporary, to: path)
            try Files.syncDirectory(Files.directory(of: path))
        } catch {
            // The first error is the one to tell.
            try? Files.remove(temporary)
            throw error
        }
        bar.end()
        call.output.print(
            DeltaReport(path: path, patch: made, base: try content(base), result: try content(result)))
        return .done
    }

    /// The patch goes over an older one at most: a slip of the pen must not cost a database.
    private static func refuseOther(_ path: String) throws {
        try OutputFile.requireDirectory(of: path)
        guard let facts = try Files.facts(path) else { return }
        guard try facts.kind == .file && (facts.size == 0 || SeekTable.read(Descriptor(path, .read)) != nil) else {
            throw MoultError(
                .output, what: "cannot write the patch to \(path)", why: "something else than a patch is there",
                now: "Name another file.")
        }
    }

    private static func content(_ path: String) throws -> Manifest.Content {
        Manifest.Content(
            size: try Files.factsThroughLinks(path)?.size ?? 0, sha256: try SHA256.digest(ofFileAt: path).hex)
    }

    /// The two files that are meant.
    private static func pair(_ before: Subject, _ after: Subject, _ call: Call) throws -> (String, String) {
        if before.kind == .database, after.kind == .database, let old = before.parts.first?.path,
            let new = after.parts.first?.path
        {
            for path in [old, new] { try refuseOpen(path) }
            return (old, new)
        }
        if [before, after].contains(where: { $0.kind == .store }) {
            throw call.wrongUsage("a store cannot be compared so", why: "patches are made between releases")
        }
        let pairs = after.parts.compactMap { part -> (name: String, old: String, new: String)? in
            guard let new = part.path, let old = before.part(part.name)?.path,
                call.value(database).map({ $0 == part.name }) ?? true
            else { return nil }
            let same = before.part(part.name)?.declared.map { $0.sha256 == part.declared?.sha256 } ?? false
            return same && call.value(database) == nil ? nil : (part.name, old, new)
        }
        if pairs.count == 1, let pair = pairs.first { return (pair.old, pair.new) }
        let names = pairs.map(\.name).joined(separator: ", ")
        throw call.wrongUsage(
            pairs.isEmpty ? "no files to make a patch from" : "--database is missing",
            why: pairs.isEmpty ? "no database of both has changed" : "these have changed: \(names)")
    }

    /// The content of a WAL is not in the file.
    private static func refuseOpen(_ path: String) throws {
        guard let facts = try Files.factsThroughLinks("\(path)-wal"), facts.size > 0 else { return }
        throw MoultError(
            .packing, .refused, what: "\(path) is in use", why: "part of what it holds is in \(path)-wal",
            now: "Close it, or run: sqlite3 \(path) 'PRAGMA wal_checkpoint(TRUNCATE)'")
    }
}

private struct DeltaReport: Report {
    let path: String
    let patch: Manifest.Content
    let base: Manifest.Content
    let result: Manifest.Content

    func write(to page: inout Page) {
        page.line(
            "\("+", .added) \(path)  \(ByteCount(patch.size)), makes \(ByteCount(result.size)) of \(ByteCount(base.size))"
        )
    }

    var json: JSON {
        [
            "patch": .string(path), "size": .size(patch.size), "sha256": .string(patch.sha256), "base": base.json,
            "result": result.json,
        ]
    }
}
