internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import MoultSandbox
package import StepKit

/// The file with the new content, the rows to carry over into it, and the checks that it must pass.
package struct NewContent {
    package var file: String
    package var preserve: [(table: String, rows: String?)] = []
    package var checks: [(sql: String, expect: Expectation)] = []
    package var checkTime = CheckTime()

    package init(file: String) { self.file = file }

    /// The rules of the rows to carry over: a row that does not fit stays in the kept copy.
    var rules: [RowRule] {
        preserve.reduce(into: []) { rules, rule in
            if let index = rules.firstIndex(where: { SQLName($0.table) == SQLName(rule.table) }) {
                rules[index].conditions.append(rule.rows)
            } else {
                rules.append(
                    RowRule(table: rule.table, conditions: [rule.rows], onConflict: .keepUser, onReject: .record))
            }
        }
    }

    private func option(_ rule: RowRule) -> String {
        "--preserve \(rule.table)" + (rule.conditions.first.flatMap { $0 }.map { ":\($0)" } ?? "")
    }

    private func refusal(_ file: ReplacedFile, _ why: String, _ now: Advice, _ cause: (any Error)? = nil) -> MoultError
    {
        MoultError(
            .notReplaceable, .refused, what: "\(file.name) was not replaced", why: why, now: now, cause: cause)
    }

    // MARK: the old file

    /// Throws if the new file is missing, or is the old one.
    func requireOther(than old: ReplacedFile) throws {
        guard let facts = try Files.factsThroughLinks(file) else {
            throw old.refusal("\(file) does not exist", "Specify the new database file.")
        }
        guard try facts.isSameFile(Files.facts(old.path)) else { return }
        throw old.refusal("\(file) is the same file", "Specify the new database file.")
    }

    private static let advice: Advice =
        "Correct the option, or leave it out: a complete copy of the old content is kept in any case."

    /// Throws if an option names a table or column that the old content does not have, because the user expects it to select rows.
    func requireSelectable(in old: ReplacedFile) throws {
        guard !preserve.isEmpty else { return }
        if try Files.facts(old.path)?.size == 0 {
            throw old.refusal("--preserve selects nothing, because \(old.name) is empty", Self.advice)
        }
        do { try NonInvasiveReader.into(old.path) { try requireSelectable($0, old, isChecked: true) } } catch let error
            as MoultError where error.code == .databaseCorrupt
        { throw old.unreadable(error) }
    }

    /// Throws also if the table is damaged. `copy` is a private copy of the old content.
    func requireReadable(in copy: String, of old: ReplacedFile) throws {
        if preserve.isEmpty { return }
        let connection = try Connection(path: copy, access: .immutable, shownAs: old.path)
        try requireSelectable(connection, old, isChecked: false)
        try connection.close()
    }

    private func requireSelectable(_ connection: Connection, _ old: ReplacedFile, isChecked: Bool) throws {
        let advice = Self.advice
        for rule in rules {
            switch try RowSelection(table: rule.table, conditions: rule.conditions).reach(
                in: connection, isChecked: isChecked)
            {
            case .rows: break
            case .absent:
                throw old.refusal(
                    "\(option(rule)) selects nothing, because \(old.name) has no table \"\(rule.table)\"", advice)
            case .unselectable(_, let cause):
                // Other errors of SQLite, for instance of a failing disk, are not the option's fault.
                let code = cause.sqlite?.resultCode.primary
                guard code == nil || code == .error || cause.code == .databaseCorrupt else { throw cause }
                let why = cause.sqlite?.message ?? cause.why ?? cause.what
                let quotes =
                    why.hasPrefix("no such column") && option(rule).contains("\"")
                    ? "; text is written in single quotes" : ""
                throw old.refusal("\(option(rule)) cannot select rows: \(why)\(quotes)", advice)
            }
        }
    }

    // MARK: the new file

    /// Copies the committed content of the new file, and examines the copy in a confined process.
    func stage(to staged: String, for old: ReplacedFile, _ watcher: Watcher) throws {
        do {
            try copy(to: staged, watcher)
            try examine(staged, old, watcher)
        } catch let error as MoultError
            where error.code == .databaseCorrupt || error.code == .validation || error.code == .hotJournal
        {
            throw refusal(
                old, [error.what, error.why].compactMap(\.self).joined(separator: ": "),
                error.now == Validation.moreTime
                    ? Validation.moreTime : "Specify a sound SQLite database as the new file.",
                error)
        }
        try requireNoRejects(staged, old)
        try requirePreservable(staged, old)
    }

    private func copy(to staged: String, _ watcher: Watcher) throws {
        try watcher.stoppingStatements {
            try NonInvasiveReader.into(file) { connection in
                try connection.requireSize()
                let copy = try Connection(path: staged, access: .readWriteCreate)
                // Synced with the file into which it is copied.
                try copy.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF")
                try connection.backup(to: copy) { done, total in
                    try watcher.stopIfAsked()
                    watcher.tell(.progress(.init("copy \(file)", done: done, total: total)))
                }
                try copy.close()
            }
        }
        // Otherwise the file would be switched to WAL mode.
        try DatabaseHeader.setRollbackMode(ofCopy: staged)
    }

    /// Runs the same checks as `moult pack`, and the queries of --check.
    private func examine(_ staged: String, _ old: ReplacedFile, _ watcher: Watcher) throws {
        let size = try Files.facts(staged)?.size ?? 0
        var validation = Validation(name: file, path: staged, depth: .full, processor: checkTime.seconds(for: size))
        (validation.isWritable, validation.wantsForeignKeys, validation.maxFindings) = (true, true, 1)
        validation.queries = checks.map(\.sql)
        let scratch = "\(Files.directory(of: staged))/exam"
        let report = try Validator.available().examine([validation], scratch: scratch) { _ in
            try watcher.stopIfAsked()
        }.first
        if let finding = report?.findings?.first {
            throw refusal(
                old, "the database \(file) is damaged: \(finding)", "Specify a sound SQLite database as the new file.")
        }
        if let failure = report?.failure { throw failure }
        guard let report, report.findings != nil, report.answers.count == checks.count else {
            throw refusal(
                old, "\(file) cannot be checked: the process that checks it sent an incomplete result", "Try again.")
        }
        for (check, answer) in zip(checks, report.answers) {
            let sql = shortened(check.sql)
            let advice: Advice = "Correct \(file), or the options of this command."
            switch answer {
            case .none(let why): throw refusal(old, "--check cannot run: \(sql): \(why)", advice)
            case .text(let text) where !check.expect.isMet(by: text):
                throw refusal(
                    old,
                    "\(file) does not pass --check: \(sql) returns \(shortened(text)), expected \(check.expect)", advice
                )
            case .text: continue
            }
        }
    }

    /// Throws if the new content has rows that an update rejected elsewhere: they belong to the users of another file.
    private func requireNoRejects(_ staged: String, _ old: ReplacedFile) throws {
        let connection = try Connection.openGuarded(path: staged, access: .readOnly, deadline: 3600)
        let count = try RejectTable(label: "").count(in: connection)
        try connection.close()
        guard count > 0 else { return }
        throw refusal(
            old, "\(file) has \(counted(count, "row")) of other users in the table \(ReleaseMarker.rejects)",
            "Remove them with: \(RejectTable.removal(from: file))")
    }

    /// Throws if the rows of an option can never be carried over into the new content.
    private func requirePreservable(_ staged: String, _ old: ReplacedFile) throws {
        guard !preserve.isEmpty else { return }
        let advice: Advice =
            "Leave out --preserve for that table: a complete copy of the old content is kept in any case."
        let guarded = try Connection.openGuarded(path: staged, access: .readOnly, deadline: 3600)
        for rule in rules {
            guard let fault = try SelectionCheck(guarded).faults(in: rule).first else { continue }
            let why = fault.why.replacing("the database has no ", with: "\(file) has no ")
            throw refusal(old, "--preserve \(rule.table): \(why)", fault.suggestion ?? advice)
        }
        try guarded.close()
        // A guarded connection would refuse statements that write. Here they are only prepared.
        let connection = try Connection(path: staged, access: .readOnly)
        for rule in rules {
            let rejects = RejectTable(label: "", isDiscarded: true)
            guard let why = try RowTransfer.fault(of: rule.table, in: connection, rejects: rejects) else { continue }
            throw refusal(
                old, "--preserve \(rule.table): rows of \(rule.table) can never be carried over: \(why)", advice)
        }
        try connection.close()
    }

    /// Rewrites errors about rows for a user who has only two files.
    func explaining(_ old: ReplacedFile, _ body: () throws -> Void) throws {
        do { try body() } catch let error as MoultError
            where [.rowRejected, .rowConflict, .shippedViolation, .selection, .appExtension].contains(error.code)
            || error.code == .databaseCorrupt
        {
            throw refusal(
                old, [error.what, error.why].compactMap(\.self).joined(separator: ": "),
                "Leave out --preserve for that table: a complete copy of the old content is kept in any case.", error)
        }
    }

    // MARK: swapped arguments

    /// Returns why the two files may have been swapped on the command line; nil if nothing suggests that.
    func reasonToDoubt(_ staged: String, _ copy: String, _ old: ReplacedFile) throws -> String? {
        if try !OpenFiles.holders(of: [file]).isEmpty, try OpenFiles.holders(of: [old.path]).isEmpty {
            return "a program has \(file) open, and none has \(old.name) open"
        }
        if try ReplacedFile.wasReplaced(file) { return "\(file) itself was replaced before" }
        guard let new = try Files.factsThroughLinks(file), let present = try Files.facts(old.path),
            new.modified < present.modified, try Files.facts(copy)?.size != 0
        else { return nil }
        let connection = try Connection(path: copy, access: .immutable)
        let hasAll = try connection.hasAll(of: staged)
        try connection.close()
        return hasAll ? "\(file) is older than \(old.name), and \(old.name) has all its rows" : nil
    }
}
