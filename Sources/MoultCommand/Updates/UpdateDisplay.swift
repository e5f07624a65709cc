internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import StepKit
internal import Synchronization

/// Shows an update in progress: each line of the plan when it is done, or events for JSON output.
///
/// Sendable without `@unchecked`: all mutable state is in a mutex.
final class UpdateDisplay: Sendable {
    private let output: Output
    private let bar: ProgressBar
    private let store: String?
    private let asksForConfirmation: Bool
    private let state = Mutex(State())

    private struct State {
        var lines: PlanLines?
        var start = monotonicSeconds()
        var lastProgress = -Double.infinity
    }

    /// `root` is the store that the plan names, and printed commands, too.
    init(_ call: Call, store: String?, naming root: String? = nil, asksForConfirmation: Bool = false) {
        var output = call.output
        if let root { output.complete = { $0.naming(store: ["--store", root], in: Command.all.takingStore) } }
        self.output = output
        bar = call.progressBar()
        self.store = store
        self.asksForConfirmation = asksForConfirmation
    }

    var watcher: Watcher { Watcher(tell: { [self] in tell($0) }, shouldStop: { Interruption.isRequested }) }

    /// Called when the plan is known, before it is applied.
    func announce(_ plan: Plan) throws {
        state.withLock {
            $0.lines = PlanLines(plan, details: output.isVerbose)
            $0.start = monotonicSeconds()
        }
        output.event("plan", ["plan": plan.json])
        output.lines { $0.title(of: plan, store: store ?? plan.store) }
        guard asksForConfirmation else { return }
        let lines = PlanLines(plan, details: output.isVerbose)
        output.lines { page in
            for line in lines.effects.flatMap({ lines.lines(of: $0, on: page.terminal) }) { page.line(line) }
            page.line()
        }
        bar.end()
        try plan.confirm()
    }

    func tell(_ event: Event) {
        switch event {
        case .phase(let pass, let phase):
            if pass == .prepare { bar.show(Progress(phase.rawValue, done: 0)) }
            output.event("phase", ["pass": pass.rawValue, "phase": phase.rawValue])
        case .progress(let progress): show(progress)
        case .done(let pass, let effect):
            output.event("done", ["pass": pass.rawValue, "effect": effect.json])
            show(effect, isUndone: pass == .undo)
        case .decided:
            bar.end()
            output.event("decided")
        case .recovered(let result):
            output.event("recovered", result.eventMembers)
            output.warnOfRows(in: result.kept)
            output.lines { page in
                page.wrapped(StyledText(result.text))
                page.otherSets(result.kept)
            }
        case .consumer(let name, let call):
            bar.end()
            output.event("consumer", ["consumer": name, "call": call.rawValue])
            output.lines { $0.wrapped("\($0.tick) \(call.rawValue)  \(name)") }
        case .warning(let text): output.warn(text)
        }
    }

    private func show(_ progress: PrepareContext.Progress) {
        bar.show(Progress(progress.what, done: progress.done, of: progress.total))
        guard output.format == .json else { return }
        // Ten times a second is enough.
        let isDue = state.withLock { state in
            let now = monotonicSeconds()
            guard now - state.lastProgress >= 0.1 else { return false }
            state.lastProgress = now
            return true
        }
        guard isDue else { return }
        output.event("progress", ["what": progress.what, "done": progress.done, "total": progress.total])
    }

    private func show(_ effect: Effect, isUndone: Bool) {
        guard let lines = state.withLock({ $0.lines }), lines.effects.contains(effect) else { return }
        output.lines { page in
            let symbols = page.terminal.symbols
            let width = max(symbols.tick.count, symbols.cross.count)
            let sign: StyledText = isUndone ? "\(symbols.cross, .bad)" : "\(symbols.tick, .good)"
            let before = sign + spaces(width - sign.width + 1)
            for line in lines.lines(of: effect, after: before, note: isUndone ? "undone: " : "", on: page.terminal) {
                page.line(line)
            }
        }
    }

    private func warn(of result: Orchestrator.Result) {
        for laggard in result.laggards { output.warn(Advice(laggard.text)) }
        for reader in result.outdated { output.warn(Advice(reader.text)) }
        for cache in result.pending { output.warn(cache.text) }
        output.warnOfRows(in: result.kept)
    }

    /// Shows the result, with suggestions for the next step; `feed` is the state of the feed if no release was newer.
    func finish(_ result: Orchestrator.Result, feed: JSON? = nil) {
        bar.end()
        let seconds = monotonicSeconds() - state.withLock { $0.start }
        let generation = result.generation ?? ""
        let version = Generation.version(of: generation)
        // Readers of JSON take the last line as the result.
        if output.format == .json { warn(of: result) }
        output.event(
            "result",
            [
                "changed": result.plan != nil, "downloaded": result.downloaded?.description, "version": version,
                "generation": generation, "feed": feed, "from": result.plan?.from?.json,
                "hold": result.plan?.hold?.json, "removed": result.collected.removed,
                "laggards": result.laggards.map(\.json), "outdated": result.outdated.map(\.json).unlessEmpty,
                "pending": result.pending.map(\.json).unlessEmpty, "rows": result.rows.map(\.json).unlessEmpty,
                "kept": result.kept.map(\.json).unlessEmpty,
                "milliseconds": result.plan.map { _ in Int(seconds * 1000) },
            ])
        if output.format == .text { warn(of: result) }
        output.lines { page in
            if let downloaded = result.downloaded {
                let when: Advice =
                    if let window = result.window { "it is installed at \(window)" } else {
                        "install it with: \(moult: "apply")"
                    }
                return page.wrapped("\("\(downloaded) is downloaded", .good); \(when)")
            }
            guard let plan = result.plan else { return page.line(StyledText(nothingToDo(version))) }
            page.line()
            for fate in result.rows {
                let text =
                    (result.earlierPlans + [plan]).contains { $0.migrates(fate.database) }
                    ? fate.migratedText : fate.text(keptIn: result.kept.isEmpty ? "the old copy" : "quarantine")
                page.wrapped("\(fate.database ?? ""): \(text)")
            }
            page.otherSets(result.kept)
            page.line(
                "\("\(version) is installed", .good) (generation \(generation)) in \(durationText(seconds: seconds))")
            if let hold = plan.hold {
                page.wrapped(StyledText(hold.sentence, .warning))
                page.line("remove the hold with: \(run: ["moult", "unhold", hold.release], .heading)")
            }
            if output.isVerbose { page.collected(result.collected) }
        }
    }
}

extension Plan {
    fileprivate func migrates(_ database: String?) -> Bool {
        effects.contains { effect in if case .migrate = effect.change { effect.database == database } else { false } }
    }
}

extension CrashRecovery.Result {
    var eventMembers: KeyValuePairs<String, (any JSONValue)?> {
        ["transaction": transaction, "ending": ending.rawValue, "from": from?.json, "to": to?.json, "text": text]
    }

    var json: JSON { .record(eventMembers) }
}
