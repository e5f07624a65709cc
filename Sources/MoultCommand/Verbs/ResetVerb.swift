internal import Moult
internal import MoultBasics
internal import MoultSQLite

/// `moult reset`: sets aside a database that does not load, and starts with an empty one.
enum ResetVerb {
    static let database = Argument(
        .ofStore("DATABASE", .databases), "A living database of the installed release, by its name")
    static let userData = Option(
        "set-user-data-aside", "Needed for what people wrote: it is set aside, and nothing of it is in the fresh one")
    static let reason = Option("reason", value: .text("TEXT"), "Why; the quarantine and the history will tell it")
    static let again = Option(
        "salvage-again", "Read the newest files of this database in quarantine again, and replace what was salvaged")
    static let dryRun = Option("dry-run", letter: "n", "Show what it would do, and change nothing")

    static let command = Command(
        "reset", .operators, "set a broken database aside and start with an empty one",
        discussion: [
            """
            It works on anything that does not load: a file that is not a database, an empty file, a journal of another file, a directory \
            in its place. The file and all that SQLite keeps beside it go to quarantine, and a fresh one is made from \
            the release. Nothing is deleted, and a crash in the middle is finished by the next command.
            """,
            """
            Of a database with what people wrote, the rows that can still be read are copied into another file, \
            beside the old ones; the app or a person decides what becomes of them. What could not be copied is named \
            with the reason. If the disk was full, make room and run it again with --salvage-again: it changes nothing \
            but that file and its report.
            """,
        ],
        arguments: [database], options: [userData, reason, again, dryRun, UpdateOptions.wait], changesStore: true,
        examples: [
            .init("Start with an empty cache:", "moult reset thumbs"),
            .init(
                "Start with an empty user database, and keep the old one aside:",
                "moult reset user --set-user-data-aside"),
            .init("Salvage once more, now that the disk has room:", "moult reset user --salvage-again"),
        ],
        exits: [
            .init(.done, "done"), .init(.changes, "with --dry-run: changes are due"),
            .init(
                .failure(.refused), "the database holds user data and was not named; or no such database"),
            .init(.failure(.undone), "it failed and was undone"),
            .init(.failure(.busy), "a process has the database open; the message names it"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let name = try call.required(database)
        let why = call.value(reason) ?? "the operator reset it"
        let aside = call.has(userData)
        let store = try call.store()
        if call.has(again) {
            if let other = [userData, dryRun].first(where: call.has) ?? (call.value(reason) == nil ? nil : reason) {
                throw call.wrongUsage(
                    "--\(again.name) and --\(other.name) exclude each other",
                    why: "--\(again.name) resets nothing, and reads only what was set aside before")
            }
            let reset = try call.orchestrator().salvageAgain(name, wait: call.wait)
            call.output.print(SalvageReport(reset: reset))
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
        if let reset { call.output.print(ResetReport(reset: reset)) }
        return .done
    }
}

private struct ResetReport: Report {
    let reset: Orchestrator.Reset

    func write(to page: inout Page) {
        page.line("\("~", .changed) \(reset.database) starts empty: \(reset.place)")
        if let setAside = reset.setAside { page.line("  the old files are in \(setAside)") }
        writeSalvage(of: reset, to: &page)
    }

    var json: JSON { reset.json }
}

private struct SalvageReport: Report {
    let reset: Orchestrator.Reset

    func write(to page: inout Page) {
        page.line("\("~", .changed) \(reset.database) was salvaged again")
        if let setAside = reset.setAside { page.line("  the old files are in \(setAside)") }
        writeSalvage(of: reset, to: &page)
    }

    var json: JSON { reset.json }
}

private func writeSalvage(of reset: Orchestrator.Reset, to page: inout Page) {
    guard let salvage = reset.salvage else { return }
    if let file = reset.salvaged {
        page.line("  \(counted(salvage.rows, "row")) could be read, and went to \(file)")
        for table in salvage.tables where !table.isWhole {
            page.line(
                "  table \(table.name) is not whole (\(counted(table.rows, "row"))): \(table.why ?? "it is damaged")")
        }
        for item in salvage.missing { page.line("  the \(item.kind) \(item.name) is missing: \(item.why)") }
        if let note = salvage.note { page.line("  not everything could be read: \(note)") }
    } else if salvage.mayBeRepeated {
        page.line("  nothing was salvaged: \(salvage.note ?? "the copy failed")")
    } else {
        page.line("  nothing could be read of them\(salvage.note.map { ": \($0)" } ?? "")")
        for table in salvage.tables where !table.isWhole {
            page.line("  table \(table.name): \(table.why ?? "it is damaged")")
        }
    }
    if let again = reset.again { page.line("  Free some space, then salvage the old files: \(again)") }
}
