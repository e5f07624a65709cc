internal import Moult
internal import MoultBasics
internal import MoultEngine
internal import Synchronization

/// `moult recover`: settles what a crash left unfinished.
enum RecoverVerb {
    static let undo = Option("undo", "Go back to what was installed before, instead of finishing it")

    static let command = Command(
        "recover", .operators, "finish an update that was interrupted, or undo it",
        discussion: [
            """
            Every command that writes does this first; this one does nothing else, and tries again where the others \
            have given up. An update that had not yet changed anything is cleaned away; one that had is finished, \
            because apps may have read the new data already. --undo is for when finishing is not possible.
            """
        ],
        options: [undo, UpdateOptions.wait], changesStore: true,
        examples: [
            .init("Settle what is unfinished:", "moult recover"),
            .init("Go back instead:", "moult recover --undo"),
        ],
        exits: [
            .init(.done, "nothing is unfinished any more"),
            .init(.failure(.stuck), "it can be neither finished nor undone; the message says why"),
            .init(.failure(.busy), "another update is running; the message names it"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        Interruption.watch()
        let hasWarned = Mutex(false)
        let watcher = Watcher(
            tell: { [output = call.output] event in
                guard case .warning(let text) = event else { return }
                output.warn(StyledText(text))
                hasWarned.withLock { $0 = true }
            }, shouldStop: { Interruption.isRequested })
        let settled = try call.orchestrator(watcher).recover(back: call.has(undo), wait: call.wait)
        call.output.print(RecoverReport(settled: settled, isQuiet: hasWarned.withLock { $0 }))
        return .done
    }
}

private struct RecoverReport: Report {
    let settled: [CrashRecovery.Result]
    /// Something was repaired, which a warning has told.
    let isQuiet: Bool

    func write(to page: inout Page) {
        if settled.isEmpty, !isQuiet { page.line("nothing to do: nothing is unfinished") }
        for result in settled { page.wrapped(StyledText(result.text)) }
    }

    var json: JSON { ["settled": .array(settled.map(\.json))] }
}

extension Call {
    /// For short verbs that write: reports recovered updates, and nothing else.
    var settledWatcher: Watcher {
        Watcher(tell: { [output] event in
            switch event {
            case .settled(let result): output.note(StyledText(result.text))
            case .warning(let text): output.warn(StyledText(text))
            default: break
            }
        })
    }
}
