internal import Moult
internal import MoultBasics
internal import Synchronization

/// `moult recover`: finishes or undoes an update that a crash interrupted.
enum RecoverVerb {
    static let undo = Option("undo", "Return to the previous release instead of finishing the update")

    static let command = Command(
        "recover", .operators, "finish or undo an interrupted update",
        discussion: [
            """
            Every command that writes to the store first finishes or undoes an interrupted update, and names the programs \
            that this runs and the files outside the store that it changes. Commands that only read leave the update as it \
            is. This command also repairs the history and the record of holds, and still tries when other commands have given up after three \
            attempts. If the update had not changed anything, its staged files are removed. Otherwise the update is \
            finished, because apps may already have read the new data; use --undo if it cannot be finished.
            """
        ], options: [undo, UpdateOptions.wait], changesStore: true,
        examples: ["Finish an interrupted update:": "moult recover", "Undo it instead:": "moult recover --undo"],
        exits: [
            .done: "no update is unfinished",
            .failure(.stuck): "the update can be neither finished nor undone; the message says why",
            .failure(.busy): "another update is running; the message names the process",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        Interruption.watch()
        let hasWarned = Mutex(false)
        let watcher = Watcher(
            tell: { [output = call.output] event in
                guard case .warning(let text) = event else { return }
                output.warn(text)
                hasWarned.withLock { $0 = true }
            }, shouldStop: { Interruption.isRequested })
        let recovered = try call.orchestrator(watcher).recover(back: call.has(undo), wait: call.wait)
        for result in recovered { call.output.warnOfRows(in: result.kept) }
        call.output.print(json: .record(["recovered": recovered.map(\.json)])) { page in
            // If a warning was shown, it has already reported the repair.
            if recovered.isEmpty, !hasWarned.withLock({ $0 }) { page.line("nothing to do: no update is unfinished") }
            for result in recovered {
                page.wrapped(StyledText(result.text))
                page.otherSets(result.kept)
            }
        }
        return .done
    }
}

extension Call {
    /// Says on standard error that an update is unfinished. For verbs that only read, and leave it as it is.
    func reportUnfinished() throws {
        let sentences: [String]
        do {
            let unfinished = try orchestrator().unfinished()
            sentences = unfinished.workers.isEmpty ? unfinished.sentences : []
        } catch { sentences = ["an update is unfinished (\((error as? MoultError)?.what ?? "\(error)"))"] }
        for sentence in sentences { output.remark("\(sentence); finish or undo it with: \(moult: "recover")") }
    }
}
