internal import Moult
internal import MoultBasics
internal import MoultSQLite

/// `moult reset`: sets aside a database that cannot be loaded, and creates a new one.
enum ResetVerb {
    static let database = Argument(
        .ofStore("DATABASE", .databases), "A writable database of the installed release, or a file that `moult replace` has replaced")
    static let userData = Option(
        "set-user-data-aside", "Allow a database with user data to be set aside")
    static let reason = Option("reason", value: .text("TEXT"), "The reason, shown in the quarantine and in the history")
    static let again = Option(
        "salvage-again", "Salvage rows again, from the newest files of this database in quarantine")
    static let dryRun = Option("dry-run", letter: "n", "Show the changes without making them")

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
            The readable rows of a shared or user database are copied into a new file, next to the old files in quarantine. A \
            report lists the rows that could not be copied, with the reason. If the disk was full, free some space \
            and run `moult reset DATABASE --salvage-again`, which replaces only that new file and its report.
            """,
        ],
        arguments: [database], options: [userData, reason, again, dryRun, UpdateOptions.wait], changesStore: true,
        examples: [
            .init("Start with an empty cache:", "moult reset thumbs"),
            .init(
                "Start with an empty user database, and keep the old one:",
                "moult reset user --set-user-data-aside"),
            .init("Salvage again, after freeing disk space:", "moult reset user --salvage-again"),
        ],
        exits: [
            .init(.done, "done"), .init(.changes, "with --dry-run: the store would change"),
            .init(
                .failure(.refused),
                "the database does not exist, or has user data and --set-user-data-aside is missing"),
            .init(.failure(.undone), "failed and undone"),
            .init(.failure(.stuck), "neither finished nor undone"),
            .init(.failure(.busy), "a process has the database open; the message names the process"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let name = try call.required(database)
        if let file = try call.replacedFile(name) { return try run(call, on: file) }
        let why = call.value(reason) ?? "reset by the operator"
        let aside = call.has(userData)
        let store = try call.store()
        if call.has(again) {
            if let other = [userData, dryRun].first(where: call.has) ?? (call.value(reason) == nil ? nil : reason) {
                throw call.wrongUsage(
                    "--\(again.name) and --\(other.name) cannot be used together",
                    why: "--\(again.name) resets nothing, and reads only files that were set aside before")
            }
            let reset = try call.orchestrator().salvageAgain(name, wait: call.wait)
            show(reset, "\(reset.database) was salvaged again", call)
            return .done
        }
        if call.has(dryRun) {
            let orchestrator = try call.orchestrator()
            let options =
                (aside ? ["--\(userData.name)"] : []) + (call.value(reason).map { ["--\(reason.name)", $0] } ?? [])
            return try call.show(
                orchestrator.planReset(name, why: why, setsUserDataAside: aside), store: store,
                command: ["moult", "reset", name] + options + call.storeWords, in: orchestrator)
        }
        Interruption.watch()
        let display = UpdateDisplay(call, store: store)
        let (_, reset) = try call.orchestrator(display.watcher).reset(
            name, why: why, setsUserDataAside: aside, wait: call.wait)
        if let reset { show(reset, "\(reset.database) was recreated: \(reset.place)", call) }
        return .done
    }

    private static func show(_ reset: Orchestrator.Reset, _ done: String, _ call: Call) {
        call.output.print(json: reset.json(call.storeWords)) { page in
            page.line("\("~", .changed) \(done)")
            if let setAside = reset.setAside { page.line("  the old files are in \(setAside)") }
            writeSalvage(of: reset, call.storeWords, to: &page)
        }
    }
}

private func writeSalvage(of reset: Orchestrator.Reset, _ storeWords: [String], to page: inout Page) {
    guard let salvage = reset.salvage else { return }
    if let file = reset.salvaged {
        page.line("  \(counted(salvage.rows, "row")) salvaged to \(file)")
        for table in salvage.tables where !table.isWhole {
            page.line(
                "  table \(table.name) is incomplete (\(counted(table.rows,  "row"))): \(table.why ?? "it is damaged")")
        }
        for item in salvage.missing { page.line("  the \(item.kind) \(item.name) is missing: \(item.why)") }
        if let note = salvage.note { page.line("  not everything could be read: \(note)") }
    } else if salvage.mayBeRepeated {
        page.line("  nothing was salvaged: \(salvage.note ?? "the copy failed")")
    } else {
        page.line("  no rows could be read from the old files\(salvage.note.map { ": \($0)" } ?? "")")
        for table in salvage.tables where !table.isWhole {
            page.line("  table \(table.name): \(table.why ?? "it is damaged")")
        }
    }
    if let again = reset.again(storeWords) { page.line("  Remove the cause, then salvage the old files: \(again)") }
}
