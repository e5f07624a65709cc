internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultSandbox

/// `moult diff`: what differs between two databases or releases.
enum DiffVerb {
    static let old = Argument(
        .file("OLD"), "A database, a bundle, a sealed manifest or a store; alone it is NEW, and the store is OLD")
    static let new = Argument(.file("NEW"), presence: .optional, "What OLD is compared with")
    static let database = Option(
        "database", value: .text("NAME"), repeats: true, "Only this database; may be given several times")
    static let rows = Option("rows", value: .number(in: 0...1000), "Show up to N rows of each kind of each table")
    static let html = Option(
        "html", value: .file(), "Also write a page to FILE: changes, rows and a map of the pages of each file")

    static let command = Command(
        "diff", .publishers, "show what differs between two databases or releases",
        discussion: [
            """
            Neither is changed, and both may be in use. Both are checked first, as SQLite's quick_check does: damaged \
            databases are not compared. Whether indexes hold the rows of their tables, "moult inspect" says. Schemas are compared by their structure and not by how they were written. Rows are the same row if they \
            have the same primary key. Without one they are compared by rowid, and a row that only moved to another \
            rowid is unchanged; without a rowid they are compared by what they hold, so that a changed row is one \
            removed and one added. Values are equal if they are stored the same.
            """,
            """
            Between a store and a release, databases of the kinds user and cache are left out, because the release \
            leaves them alone. Other fields of the manifests, such as the version, do not count as differences.
            """,
        ],
        arguments: [old, new], options: [database, rows, html],
        examples: [
            .init("Compare two databases:", "moult diff old.db new.db"),
            .init("See what a release would bring to the store:", "moult diff r/food-2.1.0.json"),
            .init("Show rows, and make a page to look at:", "moult diff --rows 5 --html d.html a.db b.db"),
        ],
        exits: [
            .init(.done, "no difference"), .init(.changes, "the two differ"),
            .init(.failure(.failed), "a database is damaged"),
        ],
        run: run)

    /// The page, in the scratch directory of the process that compares.
    private static let page = "page.html"

    static func run(_ call: Call) throws -> ExitCode {
        let first = try call.required(old)
        let second = call.value(new)
        let what = try second.map { "compare \(first) with \($0)" } ?? "compare \(call.store()) with \(first)"
        return try call.secluded(what) { scratch in
            guard let file = call.value(html), let page = try Files.read("\(scratch)/\(page)", limit: 1 << 30) else {
                return
            }
            try call.save(page, asPage: file)
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
            if let scratch = SandboxedReexec.scratch {
                // No other process changes modes in there, and no other user may read that directory.
                let file = try Descriptor("\(scratch)/\(page)", .create, mode: 0o600)
                try file.write(bytes)
            } else {
                try call.save(bytes, asPage: file)
            }
        }
        var shown = diff
        if call.number(rows) == nil { shown.removeSamples() }
        call.output.print(DiffReport(diff: shown))
        return diff.differs ? .changes : .done
    }
}
