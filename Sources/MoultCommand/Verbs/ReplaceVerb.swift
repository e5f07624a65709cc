internal import Moult
internal import MoultBasics
internal import StepKit

/// `moult replace`: replaces a database file with another one, without any setup.
enum ReplaceVerb {
    static let old = Argument(.file("OLD.db"), "The database to replace")
    static let new = Argument(
        .file("NEW.db"), presence: .optional, "The database with the new content; it is not changed")
    static let undo = Option("undo", "Restore the content from before the last replacement")
    static let list = Option("list", "List the old contents of OLD.db that are kept")
    static let preserve = Option(
        "preserve", value: .text("TABLE[:WHERE]"), repeats: true, "Carry rows of OLD.db over into the new content")
    static let check = Option(
        "check", value: .text("SQL=VALUE"), repeats: true,
        "Refuse NEW.db unless this query on it returns VALUE; the operator can also be !=, <, <=, > or >=")
    static let dryRun = Option("dry-run", letter: "n", "Check NEW.db, and show the changes; change nothing")
    static let yes = Option("yes", "Do not ask whether OLD.db and NEW.db were swapped")

    static let command = Command(
        "replace", .operators, "replace a database file with another, and keep the old content",
        discussion: [
            """
            NEW.db is checked first, by SQLite's integrity check and the queries of --check. Then its content is \
            written into OLD.db in one transaction of SQLite, while programs may have OLD.db open: after a crash, OLD.db \
            has either the old or the new content. Inode, owner, mode, journal mode and text encoding of OLD.db stay.
            """,
            """
            The old content is kept in the directory .OLD.db.moult next to the file. Each --undo goes back one \
            replacement, and keeps the content that it replaces. Old contents are never removed automatically: see \
            `moult quarantine OLD.db`. If OLD.db and NEW.db seem to be swapped, the command asks; without a terminal it \
            is refused unless --yes is given.
            """,
        ], arguments: [old, new],
        options: [undo, list, preserve, check, dryRun, yes, UpdateOptions.checkTimeout, UpdateOptions.wait],
        usesStore: false, changesStore: true,
        examples: [
            "Replace a database, and restore the old content:":
                "moult replace app.db new.db; moult replace --undo app.db",
            "Keep rows that users wrote:": "moult replace app.db new.db --preserve notes --preserve 'item:mine = 1'",
            "Check the new database first:": "moult replace app.db new.db --check 'SELECT count(*) FROM food>=7000'",
        ],
        exits: [
            .done: "OLD.db was replaced or restored", .changes: "with --dry-run: OLD.db can be replaced",
            .failure(.refused): "NEW.db is damaged, a check failed, or OLD.db cannot be replaced",
            .failure(.busy): "a process has OLD.db locked, or another replacement is running; try again",
            .failure(.stuck):
                "the disk failed during the commit: OLD.db has its old or its new content; repeat the command",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let old = try call.required(old)
        let new = call.value(new)
        if new == nil, !call.has(undo), !call.has(list) {
            throw call.wrongUsage("replace needs two files, OLD.db and NEW.db, or OLD.db and --undo or --list")
        }
        if let action = [undo, list].first(where: call.has) {
            if new != nil {
                throw call.wrongUsage("--\(action.name) takes no NEW.db", why: "it concerns the kept copies of OLD.db")
            }
            let others = [undo, list, preserve, check, yes, dryRun].filter(call.has)
                .filter { $0.name != action.name && !(action.name == undo.name && $0.name == dryRun.name) }
            if let other = others.first {
                throw call.wrongUsage("--\(other.name) cannot be used with --\(action.name)")
            }
        }
        let file = try ReplacedFile(old, by: new)
        // Keeps the directory of the file open.
        defer { withExtendedLifetime(file) {} }
        if call.has(list) {
            call.output.print(KeptReport(file: file, sets: try file.sets.all(), next: try file.sets.undoable().last))
            return .done
        }
        Interruption.watch()
        let bar = call.progressBar()
        defer { bar.end() }
        let replacement = FileReplacement(file, wait: call.wait, isDry: call.has(dryRun), call.watcher(bar))
        let content = try new.map { try call.content($0) }
        let result =
            try content.map { content in try replacement.replace(by: content) { try call.confirm($0, file, content) } }
            ?? replacement.undo()
        bar.end()
        let words = ["moult", "replace"] + (new.map { [file.name, $0] + call.contentWords } ?? ["--undo", file.name])
        call.output.print(
            ReplaceReport(
                file: file, result: result, new: new, copies: try file.sets.all().count,
                isUndoable: try !file.sets.undoable().isEmpty, command: call.has(dryRun) ? words : nil))
        return call.has(dryRun) && result.isChanged ? .changes : .done
    }

    private struct ReplaceReport: Report {
        let file: ReplacedFile
        let result: FileReplacement.Result
        /// The path of the new content; nil if the old content was restored.
        let new: String?
        let copies: Int
        let isUndoable: Bool
        /// After a dry run, the command that makes the changes.
        let command: [String]?

        private var undo: [String] { ["moult", "replace", "--undo", file.name] }
        private var time: Timestamp? { result.restored?.record?.time }

        func write(to page: inout Page) {
            let (name, tick) = (file.name, StyledText(page.terminal.symbols.tick, .good))
            let state = "its state at \(time.map { "\($0.text(for: page.terminal))" } ?? "an unknown time")"
            guard result.isChanged else {
                let content = new.map { "the content of \($0)" } ?? state
                return page.wrapped("\("=", .dim) \(name) already has \(content): nothing was changed")
            }
            if let command {
                page.wrapped(
                    "\("~", .changed) \(name) gets \(new.map { "the content of \($0)" } ?? state), \(ByteCount(result.size))"
                )
                writeRows(to: &page)
                page.wrapped("a complete copy of the present content is kept")
                page.wrapped("needs \(ByteCount(result.needs)) of free space; \(ByteCount(result.free)) is free")
                return page.line("apply with: \(run: command, .heading)")
            }
            if let new {
                page.wrapped("\(tick) \(name) now has the content of \(new)")
                writeRows(to: &page)
                page.line("restore the old content with: \(run: undo, .heading)")
            } else {
                page.wrapped("\(tick) \(name) is restored to \(state), before it was replaced")
                if let kept = result.kept {
                    let words = ["moult", "quarantine", name, kept.id]
                    page.line("the content from before this undo is also kept: \(run: words, .heading)")
                }
            }
        }

        private func writeRows(to page: inout Page) {
            for fate in result.fates {
                var fate = fate
                let displaced = fate.displaced
                fate.displaced = 0
                let text = command == nil ? fate.text(keptIn: "the old copy") : fate.plannedText(keptIn: "the old copy")
                if !text.isEmpty { page.wrapped("\(text)") }
                if displaced > 0, let new {
                    page.wrapped(
                        "\(counted(displaced, "row")) of \(fate.table) in \(new) replaced by rows of \(file.name)")
                }
            }
        }

        var json: JSON {
            .record([
                "file": file.name, "content": new, "changed": result.isChanged, "kept": result.kept.map(\.json),
                "restored": result.restored.map(\.json), "undo": isUndoable ? undo : nil, "copies": copies,
                "rows": result.fates.map(\.json).unlessEmpty, "size": result.size > 0 ? result.size : nil,
                "needs": result.needs, "free": result.free, "command": command,
            ])
        }
    }
}

extension Call {
    fileprivate func content(_ new: String) throws -> NewContent {
        var content = NewContent(file: new)
        content.preserve = values(ReplaceVerb.preserve).map { text in
            guard let colon = text.firstIndex(of: ":") else { return (text, nil) }
            return (String(text[..<colon]), String(text[text.index(after: colon)...]))
        }
        content.checks = try values(ReplaceVerb.check).map(query)
        content.checkTime = CheckTime(fixed: number(UpdateOptions.checkTimeout))
        return content
    }

    fileprivate var contentWords: [String] { words(of: [ReplaceVerb.preserve, ReplaceVerb.check]) }

    /// Splits `SQL=VALUE` at the last operator that an expectation may start with.
    private func query(_ text: String) throws -> (sql: String, expect: Expectation) {
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
        guard let expect = Expectation("\(sign) \(value)") else {
            throw wrongUsage("--check has no valid value: \"\(text)\"", why: "\(sign) needs a number")
        }
        return (String(sql), expect)
    }

    /// Asks whether to go on although the two files may have been swapped.
    fileprivate func confirm(_ doubt: String, _ file: ReplacedFile, _ content: NewContent) throws {
        if has(ReplaceVerb.yes) { return }
        let what = "the content of \(file.name) may be the new one, and \(content.file) the old one"
        if output.isDialog {
            output.warn("\(what): \(doubt)")
            return try StandardInput.confirm(
                "Replace \(file.name) with \(content.file)?", orElse: "\(file.name) was not replaced")
        }
        let words = ["moult", "replace", "--yes", file.name, content.file] + contentWords
        throw MoultError(
            .notReplaceable, .refused, what: "\(file.name) was not replaced: \(what)", why: doubt,
            now: "If the order is right, run: \(run: words)")
    }
}

struct KeptReport: Report {
    let file: ReplacedFile
    let sets: [KeptSets.Set]
    let next: KeptSets.Set?

    func write(to page: inout Page) {
        guard !sets.isEmpty else { return page.line("no old content of \(file.name) is kept") }
        var table = Table(.left, .left, .right, .left, .left)
        table.header("Set", "Kept", "Size", "Why", "")
        for set in sets {
            table.row(
                "\(set.id)", "\(set.since.text(for: page.terminal))", "\("\(ByteCount(set.size))")",
                "\(set.record?.why ?? "the record cannot be read")", "\(set == next ? "← --undo" : "")")
        }
        page.table(table)
        if next != nil {
            page.line("restore the marked one with: \(run: ["moult", "replace", "--undo", file.name], .heading)")
        }
    }

    var json: JSON { .record(["file": file.name, "quarantine": sets.map(\.json), "next": next?.id]) }
}
