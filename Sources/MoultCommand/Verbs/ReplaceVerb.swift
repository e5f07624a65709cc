internal import Moult
internal import MoultBasics
internal import MoultEngine
internal import MoultPublish
internal import MoultStore
internal import StepKit

/// `moult replace`: replaces a database file with another one, without any setup.
enum ReplaceVerb {
    static let old = Argument(.file("OLD.db"), "The database to replace")
    static let new = Argument(
        .file("NEW.db"), presence: .optional, "The database with the new content; it is not changed")
    static let undo = Option(
        "undo", "Restore the content from before the last replacement")
    static let preserve = Option(
        "preserve", value: .text("TABLE[:WHERE]"), repeats: true, "Carry rows of OLD.db over into the new content"
    )
    static let check = Option(
        "check", value: .text("SQL=VALUE"), repeats: true,
        "Refuse NEW.db unless this query on it returns VALUE; the operator can also be !=, <, <=, > or >=")
    static let dryRun = Option("dry-run", letter: "n", "Check NEW.db and show the plan; change nothing")

    static let command = Command(
        "replace", .operators, "replace a database file with another, and keep the old file",
        discussion: [
            """
            NEW.db is checked first, by SQLite's integrity check and the queries of --check. Then its content \
            replaces that of OLD.db in one step: after a crash, OLD.db has either the old or the new content. If \
            programs have OLD.db open, the content is written into the open file in one transaction. Mode and owner \
            of OLD.db do not change. Other hard links to OLD.db keep the old content.
            """,
            """
            The old file is kept in the directory .OLD.db.moult next to it, one copy for each replacement. Each \
            --undo restores the previous copy; rows written since then go to quarantine: moult quarantine --store \
            .OLD.db.moult. Copies are never removed automatically; to free the space, remove that directory. It is a \
            store, so all verbs for stores work on it. The new content has one additional table, moult_release, with \
            the installed version.
            """,
        ],
        arguments: [old, new],
        options: [undo, preserve, check, dryRun, UpdateOptions.checkTimeout, UpdateOptions.wait],
        usesStore: false, changesStore: true,
        examples: [
            .init(
                "Replace a database, and restore the old one:",
                "moult replace app.db new.db; moult replace --undo app.db"),
            .init(
                "Keep rows that users wrote:", "moult replace app.db new.db --preserve notes --preserve 'item:mine = 1'"
            ),
            .init(
                "Check the new database first:", "moult replace app.db new.db --check 'SELECT count(*) FROM food>=7000'"
            ),
        ],
        exits: [
            .init(.done, "OLD.db was replaced or restored"),
            .init(.changes, "with --dry-run: OLD.db can be replaced"),
            .init(.failure(.refused), "NEW.db is damaged, a check failed, or OLD.db cannot be replaced"),
            .init(.failure(.undone), "failed and undone"),
            .init(.failure(.busy), "a process has OLD.db locked, or another update is running; try again"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let old = try call.required(old)
        if call.value(new) == nil, !call.has(undo) {
            throw call.wrongUsage("replace needs two files, OLD.db and NEW.db, or --undo and OLD.db")
        }
        let replacement = try FileReplacement(old, by: call.value(new))
        // Keeps the directory of the file open.
        defer { withExtendedLifetime(replacement) {} }
        Interruption.watch()
        do {
            switch (call.value(new), call.has(undo)) {
            case (nil, true): return try restore(call, replacement)
            case (let new?, false): return try replace(call, replacement, by: new)
            // A command line with neither NEW.db nor --undo is handled above.
            case (_, true), (nil, false):
                throw call.wrongUsage("--undo takes no NEW.db", why: "the old content comes from the kept copy")
            }
        } catch let error as MoultError {
            throw error.naming(
                store: ["--store", replacement.store], in: Set(Command.all.filter(\.usesStore).map(\.name)))
        }
    }

    private static func replace(_ call: Call, _ replacement: FileReplacement, by new: String) throws -> ExitCode {
        var content = FileReplacement.Content(file: new)
        content.preserve = call.values(preserve).map { text in
            guard let colon = text.firstIndex(of: ":") else { return (text, nil) }
            return (String(text[..<colon]), String(text[text.index(after: colon)...]))
        }
        content.checks = try call.values(check).map(call.query)
        let bar = call.progressBar()
        defer { bar.end() }
        try call.check(replacement.store)
        let orchestrator = try call.orchestrator(of: replacement, bar)
        return try replacement.withDraft(
            of: content, wait: call.wait, orchestrator, isDry: call.has(dryRun)
        ) { draft in
            let manifest = try replacement.explaining(content, isPacking: true) {
                try pack(call, draft.path, in: draft.directory, bar)
            }
            var request = UpdateRequest(manifest: manifest)
            request.checkTime = call.checkTime
            return try install(call, replacement, content, draft, request, orchestrator, bar)
        }
    }

    private static func install(
        _ call: Call, _ replacement: FileReplacement, _ content: FileReplacement.Content,
        _ draft: FileReplacement.Draft, _ request: UpdateRequest, _ orchestrator: Orchestrator, _ bar: ProgressBar
    ) throws -> ExitCode {
        if call.has(dryRun) {
            let plan = try replacement.explaining(content) {
                try replacement.plan(request, of: draft, orchestrator)
            }
            bar.end()
            return try call.show(
                plan, store: replacement.store,
                command: ["moult", "replace", replacement.name, content.file] + call.contentWords,
                in: orchestrator, summary: replacement.summary(of: plan, new: content.file))
        }
        let result = try replacement.explaining(content) {
            try replacement.update(request, of: draft, orchestrator, wait: call.wait)
        }
        bar.end()
        var report = ReplaceReport(replacement, result, new: content.file, copies: try replacement.copies())
        report.copy = try replacement.copyWithoutUndo().map { ($0, try replacement.command(forCopy: $0)) }
        call.output.print(report)
        return .done
    }

    private static func restore(_ call: Call, _ replacement: FileReplacement) throws -> ExitCode {
        for option in [preserve, check] where !call.values(option).isEmpty {
            throw call.wrongUsage(
                "--\(option.name) cannot be used with --undo", why: "the old file is restored unchanged")
        }
        try call.check(replacement.store)
        let bar = call.progressBar()
        defer { bar.end() }
        let orchestrator = try call.orchestrator(of: replacement, bar)
        try replacement.requireUndoable(orchestrator, isDry: call.has(dryRun), wait: call.wait)
        if call.has(dryRun) {
            let plan = try orchestrator.planRollback(to: nil, reason: "", force: true, consent: Consent())
            return try call.show(
                plan, store: replacement.store, command: ["moult", "replace", "--undo", replacement.name],
                in: orchestrator, summary: replacement.summary(of: plan, new: nil))
        }
        let result = try orchestrator.rollback(to: nil, reason: "", force: true, wait: call.wait)
        bar.end()
        call.output.print(
            ReplaceReport(
                replacement, result, new: nil, copies: try replacement.copies(),
                replacedAt: try replacement.time(of: result.generation)))
        return .done
    }

    /// Packs the new content as a release, which the store installs like any other.
    private static func pack(_ call: Call, _ draft: String, in directory: String, _ bar: ProgressBar) throws -> String {
        var options = PackOptions()
        (options.output, options.allowDirty, options.checkTime) = (directory, true, call.checkTime)
        // The bundle is unpacked immediately, so better compression would waste time.
        options.level = 1
        options.warn = { call.output.warn("\($0)") }
        options.shouldStop = { Interruption.isRequested }
        let stopped = "stopped before anything was changed"
        options.progress = {
            try Interruption.check(stopped)
            bar.show(Progress($0.what, done: $0.done, of: $0.total > 0 ? $0.total : nil))
        }
        return try Interruption.reporting(stopped) { try Packer(options).pack(draft: draft).manifest }
    }
}

extension Call {
    /// The given options --preserve and --check, as words of a command line.
    fileprivate var contentWords: [String] {
        [ReplaceVerb.preserve, ReplaceVerb.check].flatMap { option in
            values(option).flatMap { ["--\(option.name)", $0] }
        }
    }

    fileprivate var checkTime: CheckTime { CheckTime(fixed: number(UpdateOptions.checkTimeout)) }

    /// Splits `SQL=VALUE` at the last operator that an expectation may start with.
    fileprivate func query(_ text: String) throws -> (sql: String, expect: String) {
        let signs = ["<=", ">=", "!=", "=", "<", ">"]
        guard let last = text.lastIndex(where: { "<>=".contains($0) }), last > text.startIndex else {
            throw wrongUsage("--check needs SQL=VALUE, not \"\(text)\"")
        }
        let begin = text.index(before: last)
        let two = String(text[begin...last])
        let sign = signs.contains(two) ? two : String(text[last])
        var sql = text[..<(signs.contains(two) ? begin : last)]
        while sql.last == " " { sql.removeLast() }
        let value = text[text.index(after: last)...].drop { $0 == " " }
        return (String(sql), "\(sign) \(value)")
    }

    fileprivate func orchestrator(of replacement: FileReplacement, _ bar: ProgressBar) throws -> Orchestrator {
        let output = output
        let watcher = Watcher(
            tell: { event in
                switch event {
                case .progress(let progress):
                    bar.show(
                        Progress(progress.what, done: progress.done, of: progress.total > 0 ? progress.total : nil))
                case .decided: bar.end()
                case .recovered(let result): output.lines { $0.wrapped(StyledText(result.text)) }
                case .warning(let text): output.warn(StyledText(text))
                case .phase, .done, .consumer: break
                }
            }, shouldStop: { Interruption.isRequested })
        return try Orchestrator(root: replacement.store, steps: steps, watcher: watcher)
    }
}

extension Orchestrator.Result {
    /// Whether the file kept its content.
    fileprivate var changesNothing: Bool {
        plan.map { plan in
            plan.effects.map(\.change.traits).allSatisfy { !$0.isStaged && $0.handling != .setAside }
        } ?? recovered.isEmpty
    }
}

private struct ReplaceReport: Report {
    private let replacement: FileReplacement
    private let result: Orchestrator.Result
    /// The path of the new content; nil if the old content was restored.
    private let new: String?
    private let copies: Int
    /// The time at which the restored content had been replaced.
    private let replacedAt: Timestamp?
    /// The old file, if it was not a database, and the command that places it next to the new one.
    fileprivate var copy: (path: String, command: [String])?

    init(
        _ replacement: FileReplacement, _ result: Orchestrator.Result, new: String?, copies: Int,
        replacedAt: Timestamp? = nil
    ) {
        (self.replacement, self.result, self.new, self.copies) = (replacement, result, new, copies)
        self.replacedAt = replacedAt
    }

    private var undo: [String] { ["moult", "replace", "--undo", replacement.name] }
    private var storeWords: [String] { ["--store", replacement.store] }

    func write(to page: inout Page) {
        let tick = StyledText(page.terminal.symbols.tick, .good)
        if let new {
            page.wrapped("\(tick) \(replacement.name) now has the content of \(new)")
            for fate in result.rows { page.wrapped("\(fate.text(keptIn: FileReplacement.copyName))") }
            if let copy {
                page.wrapped("the old \(replacement.name) was not a valid database, so --undo cannot restore it")
                page.line("copy it with: \(shellLine(copy.command), .heading)")
            } else {
                page.line("restore the old content with: \(shellLine(undo), .heading)")
            }
        } else if result.changesNothing {
            page.wrapped("\("=", .dim) \(replacement.name) already has its old content: nothing was restored")
        } else {
            let time = replacedAt.map { " at \($0.text(for: page.terminal))" } ?? ""
            page.wrapped("\(tick) \(replacement.name) is restored to its state\(time), before it was replaced")
            if !result.kept.isEmpty {
                page.line(
                    "the content from before this undo is also kept, in quarantine: \(shellLine(["moult", "quarantine"] + storeWords), .heading)"
                )
            }
        }
    }

    var json: JSON {
        .compact([
            "file": .string(replacement.name), "content": .optional(new), "store": .string(replacement.store),
            "undo": new == nil || copy != nil ? nil : .array(undo.map { .string($0) }),
            "copy": .optional(copy?.path), "copies": .size(copies),
            "time": .optional(replacedAt?.description),
            "rows": result.rows.isEmpty ? nil : .array(result.rows.map(\.json)),
            "kept": result.kept.isEmpty ? nil : .array(result.kept.map(\.json)),
        ])
    }
}
