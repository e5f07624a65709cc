internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultSandbox

/// `moult diff`: shows the differences between two databases or releases.
enum DiffVerb {
    static let old = Argument(
        .file("OLD", orDirectory: true),
        "The old database, bundle, manifest or store. Without NEW: the new one, and the store is the old one")
    static let new = Argument(
        .file("NEW", orDirectory: true), presence: .optional, "The new database, bundle, manifest or store")
    static let database = Option("database", value: .text("NAME"), repeats: true, "Only this database")
    static let rows = Option(
        "rows", value: .number(in: 0...1000), "Show up to N added, N removed and N changed rows of each table")
    static let html = Option(
        "html", value: .file(), "Also write an HTML page to FILE, with the changed rows and a map of the changed pages")

    static let command = Command(
        "diff", .publishers, "show the differences between two databases or releases",
        discussion: [
            """
            The command changes neither side, and both may be in use. It refuses to compare a damaged database, but \
            does not check whether indexes match their tables; `moult inspect` does. Schemas are compared by structure, \
            not as text.
            """,
            """
            Rows are matched by primary key, otherwise by rowid, otherwise by their values. Without a primary key, a \
            row that only moved to another rowid counts as unchanged. If rows can be matched only by their values, a \
            changed row counts as one removed and one added row. Two values are equal only if both their types and \
            their bytes are equal, so 1 and 1.0 differ. For a full-text index that stores no text (content=''), the \
            rows of the index itself are compared.
            """,
            """
            Between a store and a release, user databases and caches are left out, because the release does not \
            replace their content. Changes in the manifests themselves, such as the version, do not count as \
            differences.
            """,
        ], arguments: [old, new], options: [database, rows, html],
        examples: [
            "Compare two databases:": "moult diff old.db new.db",
            "Compare the store with a release:": "moult diff r/food-2.1.0.json",
            "Show rows, and write an HTML page:": "moult diff --rows 5 --html d.html a.db b.db",
        ],
        exits: [
            .done: "no differences", .changes: "differences were found", .failure(.failed): "a database is damaged",
        ], run: run)

    private static let page = "page.html"

    static func run(_ call: Call) throws -> ExitCode {
        let first = try call.required(old)
        let second = call.value(new)
        let what: String
        do {
            what = try second.map { "compare \(first) with \($0)" } ?? "compare \(call.store()) with \(first)"
        } catch let error as MoultError where error.code == .noStore {
            throw call.wrongUsage(
                "diff needs OLD and NEW", why: "a single argument is compared with a store, and no store was found")
        }
        return try call.sandboxed(what) { scratch in
            if second == nil { try call.reportUnfinished() }
            let page = "\(scratch)/\(page)"
            guard let file = call.value(html), let bytes = try Files.read(page, limit: 1 << 30) else { return }
            try call.save(bytes, asPage: file, mode: Files.facts(page)?.mode ?? 0o600)
        } body: {
            try compare(call, first, second)
        }
    }

    private static func compare(_ call: Call, _ first: String, _ second: String?) throws -> ExitCode {
        let file = call.value(html)
        var options = DiffOptions()
        options.samples = call.number(rows) ?? (file == nil ? 0 : 10)
        options.pages = file != nil
        let before = try second.map { _ in try call.subject(first) } ?? call.installedSubject()
        let after = try call.subject(second ?? first)
        try call.confine(to: before, after)
        let diff = try call.compare(before, after, only: call.values(database), options)
        if let file {
            let bytes = Array(DiffPage(diff).html.utf8)
            // The page contains rows of the databases.
            let mode = try Files.mode(ofFileFrom: before.sources + after.sources)
            if let scratch = SandboxedReexec.scratch {
                // A sandboxed process cannot change modes, so the file gets its mode when it is created.
                let file = try Descriptor("\(scratch)/\(page)", .create, mode: mode)
                try file.write(bytes)
            } else {
                try call.save(bytes, asPage: file, mode: mode)
            }
        }
        var shown = diff
        if call.number(rows) == nil { shown.removeSamples() }
        call.output.print(shown)
        return diff.differs ? .changes : .done
    }
}
