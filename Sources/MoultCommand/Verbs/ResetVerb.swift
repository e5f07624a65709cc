internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite

/// `moult reset`: sets aside a database that cannot be loaded, and creates a new one.
enum ResetVerb {
    static let database = Argument(
        .ofStore("DATABASE", .databases),
        "A writable database of the installed release, or a file that `moult replace` has replaced")
    static let userData = Option("set-user-data-aside", "Allow a database with user data to be set aside")
    static let keep = Option(
        "keep-readable",
        "Set a database with user data aside, and put the rows that can be read into the new one, by the rules for rows that an "
            + "update carries over")
    static let reason = Option("reason", value: .text("TEXT"), "The reason, shown in the quarantine and in the history")
    static let again = Option(
        "salvage-again", "Salvage rows again, from the newest files of this database in quarantine")

    static let command = Command(
        "reset", .operators, "set a damaged database aside and create a new one",
        discussion: [
            """
            Use this command for a database that does not open, for example because the file is empty or not a \
            database, because a directory is at its path, or because the -journal or -wal next to it belongs to another \
            database. The file and its sidecar files go to quarantine, and a new database is created from the \
            release. Nothing is deleted. After a crash, the next command finishes the reset.
            """,
            """
            The readable rows of a shared or user database are copied into a new file, next to the old files in quarantine, \
            with a report on what could not be read. --keep-readable puts them into the new database. If the disk was \
            full, free some space and run `moult reset DATABASE --salvage-again`, which replaces only that new file and \
            its report.
            """,
        ], arguments: [database], options: [keep, userData, reason, again, UpdateOptions.dryRun, UpdateOptions.wait],
        changesStore: true,
        examples: [
            "Start with an empty cache:": "moult reset thumbs",
            "Start with an empty user database, and keep the old one:": "moult reset user --set-user-data-aside",
            "Create the database again with all rows that can be read:": "moult reset user --keep-readable",
            "Salvage again, after freeing disk space:": "moult reset user --salvage-again",
        ],
        exits: [
            .done: "done", .changes: "with --dry-run: the store would change",
            .failure(.refused):
                "the database does not exist, or has user data and neither --keep-readable nor --set-user-data-aside is given",
            .failure(.undone): "failed and undone", .failure(.stuck): "neither finished nor undone",
            .failure(.busy): "a process has the database open; the message names the process",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let name = try call.required(database)
        if let file = try call.replacedFile(name) { return try run(call, on: file) }
        let why = call.value(reason) ?? "reset by the operator"
        let keeps = call.has(keep)
        let aside = keeps || call.has(userData)
        let store = try call.store()
        if call.has(again) {
            if let other = [keep, userData, UpdateOptions.dryRun, reason].first(where: call.has) {
                throw call.wrongUsage(
                    "--\(again.name) and --\(other.name) cannot be used together",
                    why: "--\(again.name) resets nothing, and reads only files that were set aside before")
            }
            let reset = try call.orchestrator().salvageAgain(name, wait: call.wait)
            show(reset, "\(reset.database) was salvaged again", call)
            return .done
        }
        if call.has(UpdateOptions.dryRun) {
            let orchestrator = try call.orchestrator()
            let options = call.words(of: [keeps ? keep : userData, reason])
            return try call.show(
                orchestrator.planReset(name, why: why, setsUserDataAside: aside), store: store,
                command: ["moult", "reset", name] + options + call.storeWords, in: orchestrator)
        }
        Interruption.watch()
        let display = UpdateDisplay(call, store: store)
        let (_, reset) = try call.orchestrator(display.watcher).reset(
            name, why: why, setsUserDataAside: aside, keepingReadable: keeps, wait: call.wait)
        if let reset { show(reset, "\(reset.database) was recreated: \(reset.place)", call) }
        return .done
    }

    private static func show(_ reset: Orchestrator.Reset, _ done: String, _ call: Call) {
        call.output.print(json: reset.json(call.storeWords)) { page in
            page.line("\("~", .changed) \(done)")
            if let setAside = reset.setAside { page.line("  the old files are in \(setAside)") }
            if let salvage = reset.salvage { page.salvage(salvage, to: reset.salvaged) }
            if let again = reset.again(call.storeWords) {
                page.line("  Remove the cause, then salvage the old files: \(again)")
            }
            for fate in reset.restored { page.restored(fate) }
            for failure in reset.failures { page.wrapped("\("\(failure)", .warning)", indent: 2) }
            if reset.restored.isEmpty, reset.failures.isEmpty, reset.salvaged != nil, let set = reset.setAside,
                let table = reset.salvage?.tables.first(where: { $0.rows > 0 })
            {
                let command = ["moult", "quarantine", "--restore", Files.name(of: set), "--table", table.name]
                page.line("  To put rows back, table by table: \(run: command)")
            }
        }
    }
}
