internal import MoultBasics
internal import MoultCore

/// `moult rollback`: back to a kept generation.
enum RollbackVerb {
    static let target = Option(
        "to", value: .text("RELEASE"), "A kept version or generation; else the one that was in service before")
    static let reason = Option("reason", value: .text("TEXT"), "Why; the hold and the history will tell it")
    static let dryRun = Option("dry-run", letter: "n", "Show what it would do, and change nothing")

    static let command = Command(
        "rollback", .operators, "go back to the release before, and hold the present one",
        discussion: [
            """
            The pointer goes back to a kept generation, which takes the same time at any size. Users' databases stay \
            as they are. The release that is left is put on hold, so that the next timer does not bring it back: end \
            that with moult unhold.
            """
        ],
        options: [target, reason, dryRun, UpdateOptions.takeOver, UpdateOptions.wait] + UpdateOptions.consumers,
        changesStore: true,
        examples: [
            .init("Go back, and say why:", "moult rollback --reason 'names are missing'"),
            .init("Go back to a kept version:", "moult rollback --to 2.0.0"),
        ],
        exits: [
            .init(.done, "it is done"), .init(.changes, "with --dry-run: there are changes"),
            .init(.failure(.refused), "there is nothing to go back to, or it cannot be trusted"),
            .init(.failure(.undone), "it failed and was undone"),
            .init(.failure(.busy), "somebody else is at work, or does not let go; the message names them"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let wanted = call.value(target)
        let why = call.value(reason) ?? "rolled back"
        let store = try call.store()
        if call.has(dryRun) {
            let orchestrator = try call.orchestrator()
            let options =
                [target, reason].flatMap { option in
                    call.value(option).map { ["--\(option.name)", $0] } ?? []
                } + call.values(UpdateOptions.takeOver).flatMap { ["--\(UpdateOptions.takeOver.name)", $0] }
            return try call.show(
                orchestrator.planRollback(to: wanted, reason: why, consent: call.consent), store: store,
                command: ["moult", "rollback"] + options + call.storeWords, in: orchestrator)
        }
        Interruption.watch()
        let display = UpdateDisplay(call, store: store)
        let result = try call.orchestrator(display.watcher).rollback(
            to: wanted, reason: why, consent: call.consent, wait: call.wait, announce: display.announce)
        display.finish(result, storeWords: call.storeWords)
        return .done
    }
}
