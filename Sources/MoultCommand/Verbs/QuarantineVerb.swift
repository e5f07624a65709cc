internal import Moult
internal import MoultBasics
internal import StepKit

/// `moult quarantine`: manages old database content kept by updates, migrations and resets.
enum QuarantineVerb {
    static let set = Argument(
        .ofStore("NAME", .quarantine), presence: .optional,
        "The name of a set, or of a database, which selects its newest set; or a file that `moult replace` has replaced"
    )
    static let member = Argument(.text("SET"), presence: .optional, "A set of that file")
    static let export = Option("export", value: .file(), "Copy the database into a new file")
    static let restore = Option("restore", "Restore the database; the current one goes to quarantine")
    static let table = Option("table", value: .text("TABLE"), "With --restore: restore only missing rows of this table")
    static let remove = Option("remove", "Remove the set; with --older-than, remove sets of at least that age")
    static let olderThan = Option(
        "older-than", value: .number("DAYS", in: 0...36_500), "With --remove: the minimum age in days")
    static let userData = Option("user-data", "With --older-than: also remove databases with user data")

    static let command = Command(
        "quarantine", .operators, "list, export, restore or remove old content of databases",
        discussion: [
            """
            An update never destroys data that an app or a user wrote. Rows that the new content lacks go to quarantine, \
            and if anything else differs, the complete old database does, with the reason, the release and the number \
            of rows. Older sets of rows of a database are collected in one set. Only caches are removed automatically, while the quarantine is above its budget ("quarantine" in moult.json).
            """
        ],
        arguments: [set, member], options: [export, restore, table, remove, olderThan, userData, UpdateOptions.wait],
        rules: [
            .one([export, restore, remove], why: "choose one"), .needs(table, restore), .needs(olderThan, remove),
            .needs(userData, olderThan),
        ], changesStore: true,
        examples: [
            "List the databases in quarantine:": "moult quarantine",
            "Restore rows that an update left out:": "moult quarantine --restore pantry --table note",
            "Restore a whole database:": "moult quarantine --restore diary",
            "Export a copy:": "moult quarantine --export old-diary.db diary",
            "Remove caches that have been in quarantine for a month:": "moult quarantine --remove --older-than 30",
        ],
        exits: [
            .done: "done", .failure(.refused): "the set does not exist or cannot be restored",
            .failure(.busy): "a process has the database open; the message names the process",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        try check(call)
        if let file = try call.replacedFile(call.value(set)) { return try run(call, on: file) }
        if let word = call.value(member) {
            throw call.wrongUsage("unexpected argument \"\(word)\"", why: "only a replaced file has sets of its own")
        }
        let orchestrator = try call.orchestrator(call.watcher())
        if call.has(remove), let days = call.number(olderThan) {
            let report = try orchestrator.removeQuarantined(
                call.value(set), olderThan: days, includingUserData: call.has(userData), wait: call.wait)
            showRemoved(report.removed, staying: report.kept, call)
            return .done
        }
        guard let name = call.value(set) else {
            showAll(try orchestrator.quarantine(), call)
            try call.reportUnfinished()
            return .done
        }
        let set = try orchestrator.quarantined(name)
        if let file = call.value(export) {
            try OutputFile.requireDirectory(of: file)
            try orchestrator.export(set, to: file)
            try call.reportUnfinished()
            showExported(set.id, to: file, call)
        } else if call.has(remove) {
            try refuseAmbiguous(name, set, orchestrator)
            try orchestrator.remove([set], wait: call.wait)
            showRemoved([set], call)
        } else if call.has(restore), let table = call.value(table) {
            showRestored(try orchestrator.restore(set, table: table, wait: call.wait), of: set, call)
        } else if call.has(restore) {
            Interruption.watch()
            let result = try orchestrator.restore(set, wait: call.wait)
            let kept = try Generation.names(orchestrator.layout).map { Generation.version(of: $0) }
            showRestored(result, of: set, kept: kept, call)
        } else {
            show(set, call)
        }
        return .done
    }

    private static func check(_ call: Call) throws {
        if let action = [export, restore, remove].first(where: call.has), call.value(set) == nil, !call.has(olderThan) {
            throw call.wrongUsage("--\(action.name) needs the NAME of a set or a database")
        }
    }

    /// Throws if `name` is the name of a database with several sets: a command may show the newest of them, but must not choose
    /// one to remove.
    private static func refuseAmbiguous(_ name: String, _ set: QuarantineShelf.Set, _ orchestrator: Orchestrator) throws
    {
        let same = try orchestrator.quarantine().filter { $0.record?.database == name }
        guard name != set.id, same.count > 1 else { return }
        throw MoultError(
            .refused, .refused, what: "\(counted(same.count, "set")) in quarantine belong to \"\(name)\"",
            why: "they are \(same.map(\.id).joined(separator: ", "))",
            now: "Specify the one to remove: \(moult: "quarantine", "--remove", "SET")")
    }

    private static func showAll(_ sets: [QuarantineShelf.Set], _ call: Call) {
        call.output.print(json: .record(["quarantine": sets.map(\.json)])) { page in
            guard !sets.isEmpty else { return page.line("nothing is in quarantine") }
            var table = Table(.left, .left, .left, .right, .right, .left)
            table.header("Set", "Database", "Reason", "Size", "Rows", "Kept since")
            for set in sets {
                let rows = set.record?.rows.map { "\($0.values.reduce(0, +))" } ?? ""
                table.row(
                    "\(set.id)", "\(set.record?.database ?? "?")", "\(set.record?.reason.rawValue ?? "?")",
                    "\("\(ByteCount(set.size))")", "\(rows)", "\(set.since.description)")
            }
            page.table(table)
        }
    }

    static func show(_ set: QuarantineShelf.Set, _ call: Call) {
        call.output.print(json: .record(["quarantine": [set.json]])) { page in
            var table = Table(.left, .left)
            func row(_ name: String, _ value: String?) {
                if let value, !value.isEmpty { table.row("\(name)", "\(value)") }
            }
            row("set", set.id)
            row("database", set.record?.database)
            row("kind", set.record?.kind.rawValue)
            row("path", set.record?.path)
            row("release", set.record?.release)
            row("reason", set.record.map { "\($0.reason.rawValue): \($0.why)" })
            row("since", set.since.description)
            row("size", "\(ByteCount(set.size))")
            for (name, rows) in (set.record?.rows ?? [:]).sorted(by: { $0.key < $1.key }) where rows > 0 {
                row("rows", "\(rows) in table \(name) when the database was set aside")
            }
            if set.record?.isRows == true { row("kept", "only these rows: nothing else differed from the release") }
            row("files", set.directory)
            page.table(table)
        }
    }

    static func showExported(_ set: String, to file: String, _ call: Call) {
        call.output.print(json: .record(["set": set, "file": file])) { $0.line("\(set) was copied to \(file)") }
    }

    static func showRemoved(
        _ removed: [QuarantineShelf.Set], staying: [(set: QuarantineShelf.Set, why: String)] = [], _ call: Call
    ) {
        let json = JSON.record([
            "removed": removed.map(\.id), "staying": staying.map { JSON.record(["set": $0.set.id, "why": $0.why]) },
        ])
        call.output.print(json: json) { page in
            if removed.isEmpty { page.line("nothing was removed") }
            for set in removed { page.line("\("-", .removed) \(set.id) was removed") }
            for (set, why) in staying { page.wrapped("\("=", .dim) \(set.id) stays: \(why)") }
            if !staying.isEmpty { page.line("to remove user data as well, use --\(userData.name)") }
        }
    }

    private static func showRestored(_ fate: RowFate, of set: QuarantineShelf.Set, _ call: Call) {
        call.output.print(json: fate.json.setting("set", to: .string(set.id))) { page in
            page.restored(fate)
            if fate.incomplete > 0 {
                let export = ["moult", "quarantine", "--export", "FILE", set.id]
                page.wrapped(
                    "the values of \(counted(fate.incomplete, "row")) in columns that \(fate.table) no longer has were not "
                        + "restored. To export the old database: \(run: export)")
            }
        }
    }

    private static func showRestored(
        _ result: Orchestrator.Result, of set: QuarantineShelf.Set, kept: [String], _ call: Call
    ) {
        call.output.print(json: .record(["set": set.id, "kept": result.kept.map(\.json)])) { page in
            page.line("\(set.record?.database ?? set.id) was restored from \(set.id)")
            let installed = result.generation.map { Generation.version(of: $0) } ?? ""
            // Files from before moult have no release with which the content could be compared.
            if let release = set.record?.release, !release.isEmpty, release != installed {
                let back =
                    kept.contains(release) ? ["rollback", "--to", release] : ["apply", "RELEASE", "--allow-downgrade"]
                page.wrapped(
                    "the restored content is from release \(release), but \(installed) is installed: an app for \(installed) may not "
                        + "be able to read it. To go back to \(release) completely: " + "\(run: ["moult"] + back)")
            }
            for kept in result.kept { page.line("  the replaced database is in \(kept.directory)") }
        }
    }
}

extension Page {
    /// What became of the rows of a table that were restored.
    mutating func restored(_ fate: RowFate) {
        line("\(counted(fate.carried, "row")) of \(fate.table) restored")
        if fate.rejected > 0 {
            wrapped(
                "\(counted(fate.rejected, "row")) could not be restored, and went to \(ReleaseMarker.rejects) with the reason"
            )
        }
        if fate.kept > fate.incomplete {
            let misfits = fate.kept - fate.incomplete
            wrapped("\(counted(misfits, "row")) \(misfits == 1 ? "does" : "do") not fit into the current database")
        }
    }
}
