internal import MoultBasics
internal import MoultCore
internal import MoultSQLite

/// `moult reset`: a database that will not load is set aside and begun anew.
enum ResetVerb {
    static let database = Argument(.text("DATABASE"), "A living database of the installed release, by its name")
    static let userData = Option(
        "set-user-data-aside", "Needed for what people wrote: it is set aside, and nothing of it is in the fresh one")
    static let reason = Option("reason", value: .text("TEXT"), "Why; the quarantine and the history will tell it")
    static let dryRun = Option("dry-run", letter: "n", "Show what it would do, and change nothing")

    static let command = Command(
        "reset", .operators, "set a broken database aside, and begin it anew",
        discussion: [
            """
            It works when nothing loads: a file that is no database, zero bytes, a journal of another file, a directory \
            in its place. The file and all that SQLite keeps beside it go to quarantine, and a fresh one is made from \
            the release. Nothing is deleted, and a crash in the middle is finished by the next command.
            """,
            """
            Of a database with what people wrote, the rows that can still be read are copied into another file, \
            beside the old ones; the app or a person decides what becomes of them.
            """,
        ],
        arguments: [database], options: [userData, reason, dryRun, UpdateOptions.wait], changesStore: true,
        examples: [
            .init("Begin a cache anew:", "moult reset thumbs"),
            .init(
                "Begin the user's database anew, and keep the old one aside:", "moult reset user --set-user-data-aside"),
        ],
        exits: [
            .init(.done, "it is done"), .init(.changes, "with --dry-run: there are changes"),
            .init(
                .failure(.refused), "it has what people wrote, and they were not named; or there is no such database"),
            .init(.failure(.undone), "it failed and was undone"),
            .init(.failure(.busy), "somebody has the database open; the message names them"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let name = try call.required(database)
        let why = call.value(reason) ?? "the operator reset it"
        let aside = call.has(userData)
        let store = try call.store()
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
        if let reset { call.output.print(ResetReport(reset: reset)) }
        return .done
    }
}

private struct ResetReport: Report {
    let reset: Orchestrator.Reset

    func write(to page: inout Page) {
        page.line("\("~", .changed) \(reset.database) begins anew: \(reset.place)")
        if let setAside = reset.setAside { page.line("  the old files are in \(setAside)") }
        guard let salvage = reset.salvage else { return }
        if let file = reset.salvaged {
            page.line("  \(counted(salvage.rows, "row")) could be read, and went to \(file)")
            for table in salvage.tables where !table.isWhole {
                page.line("  of table \(table.name) only \(counted(table.rows, "row")) could be read")
            }
        } else {
            page.line("  nothing could be read of them\(salvage.note.map { ": \($0)" } ?? "")")
        }
    }

    var json: JSON { reset.json }
}
