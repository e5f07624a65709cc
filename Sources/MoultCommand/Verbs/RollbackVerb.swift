internal import Moult
internal import MoultBasics

/// `moult rollback`: returns to a kept generation.
enum RollbackVerb {
    static let target = Option(
        "to", value: .ofStore("RELEASE", .releases),
        "A kept version or generation (default: the newest older release that is not on hold)")
    static let reason = Option("reason", value: .text("TEXT"), "The reason, shown with the hold and in the history")
    static let force = Option("force", "Allow --to to select a release that is on hold")

    static let command = Command(
        "rollback", .operators, "go back to an older release, and put the current one on hold",
        discussion: [
            """
            The command switches back to a kept generation. For read-only databases, this takes the same time \
            regardless of their size. Shared databases get the older content, and rows of the app are carried over; \
            user databases stay as they are. The current release is put on hold, so that no timer installs it again. \
            To remove the hold, run: moult unhold
            """,
            """
            Without --to, the command chooses the newest kept release that is older than the installed one and \
            neither on hold nor withdrawn. A hold on all releases (`moult hold` without a VERSION) blocks updates, but \
            not rollbacks.
            """,
        ],
        options: [target, force, reason, UpdateOptions.dryRun, UpdateOptions.takeOver, UpdateOptions.wait]
            + UpdateOptions.consumers,
        rules: [.needs(force, target, why: "--force overrides the hold on one release, so specify that release")],
        changesStore: true,
        examples: [
            "Go back, with a reason:": "moult rollback --reason 'names are missing'",
            "Go back to a kept version:": "moult rollback --to 2.0.0",
            "Go back to a version that is on hold:": "moult rollback --to 2.0.0 --force",
        ],
        exits: [
            .done: "done", .changes: "with --dry-run: the store would change",
            .failure(.refused): "no kept release can be used, or the release given with --to is on hold or not trusted",
            .failure(.undone): "failed and undone", .failure(.stuck): "neither finished nor undone",
            .failure(.busy):
                "another update is running, or a process keeps a database open; the message names the process",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let wanted = call.value(target)
        let why = call.value(reason) ?? ""
        let store = try call.store()
        if call.has(UpdateOptions.dryRun) {
            let orchestrator = try call.orchestrator()
            let options = call.words(of: [target, reason, force, UpdateOptions.takeOver])
            return try call.show(
                orchestrator.planRollback(to: wanted, reason: why, force: call.has(force), consent: call.consent),
                store: store, command: ["moult", "rollback"] + options + call.storeWords, in: orchestrator)
        }
        Interruption.watch()
        let display = UpdateDisplay(call, store: store)
        let result = try call.orchestrator(display.watcher).rollback(
            to: wanted, reason: why, force: call.has(force), consent: call.consent, wait: call.wait,
            announce: display.announce)
        display.finish(result)
        return .done
    }
}
