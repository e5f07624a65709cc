internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Applies the effects of a plan one after the other, or undoes all of them.
package struct Applier {
    let transaction: Transaction
    let plan: Plan
    let steps: StepSet
    let context: PlanContext
    let performer: Performer
    let tell: @Sendable (Event) -> Void
    /// Like `tell`, also in recovery, which does not show the single effects.
    let report: @Sendable (Event) -> Void
    let stopwatch: Stopwatch

    package init(
        transaction: Transaction, plan: Plan, steps: StepSet, context: PlanContext, performer: Performer,
        tell: @escaping @Sendable (Event) -> Void, report: (@Sendable (Event) -> Void)? = nil,
        stopwatch: Stopwatch = Stopwatch()
    ) {
        self.report = report ?? tell
        (self.transaction, self.plan, self.steps, self.context) = (transaction, plan, steps, context)
        (self.performer, self.tell, self.stopwatch) = (performer, tell, stopwatch)
    }

    private var apply: ApplyContext {
        ApplyContext(
            plan: context, staging: transaction.directory,
            intents: JournaledIntents(journal: transaction.journal))
    }

    /// Applies the effects; throws at the first one that fails.
    func applyEffects(begun: (Effect) -> Void = { _ in }) throws {
        // The hold comes before the first effect, so that the release that a rollback replaces is always on hold.
        try plan.placeHold(transaction.layout)
        var phase: Phase?
        for effect in plan.effects {
            if effect.phase != phase {
                phase = effect.phase
                tell(.phase(.apply, effect.phase))
            }
            begun(effect)
            stopwatch.begin(.apply, effect.step)
            if let own = try ownStep(of: effect) { try own.apply(effect, apply) } else { try performer.perform(effect) }
            if !performer.writable.isSkipped(effect.database) {
                do { try step(of: effect).check(effect, apply) } catch let error as MoultError {
                    try performer.writable.leaveIfRecovered(effect, error)
                }
            }
            tell(.done(.apply, effect))
        }
    }

    /// Undoes the effects, last one first.
    func undoEffects(_ effects: [Effect]) throws {
        for effect in effects.reversed() {
            if let own = try ownStep(of: effect) { try own.undo(effect, apply) } else { try performer.revert(effect) }
            if effect.changesStore { tell(.done(.undo, effect)) }
        }
        try plan.withdrawHold(transaction.layout)
        try withdrawAnnouncement()
        for file in performer.remaining {
            report(.warning("\(file) stays: the update created it, and an app may have written to it"))
        }
    }

    /// Announces the old release again, if readers may have seen the new one already.
    private func withdrawAnnouncement() throws {
        let layout = transaction.layout
        guard try Announcement.read(layout)?.transaction == plan.id else { return }
        guard let from = plan.from?.generation else { return try Files.remove(layout.announced) }
        try Announcement(generation: from, transaction: Planner.newID()).write(layout)
    }

    /// Asks the steps that are not built in to clean up; returns their errors.
    package func clean(_ ending: Ending) -> [Advice] {
        steps.others(of: plan).compactMap { step in
            do { try step.clean(ending, apply) } catch { return "\(error)" }
            return nil
        }
    }

    /// Applies the effects. If one fails, undoes those that were begun; the undo is exact, because no other process can have
    /// changed the store meanwhile.
    func applyOrUndo() throws {
        var begun: [Effect] = []
        do {
            try applyEffects { begun.append($0) }
            stopwatch.begin(.apply, "finish")
            try finish()
        } catch {
            if performer.writable.isIrrevocable { throw Self.irrevocable(plan, error) }
            try undo(begun, because: error)
            throw Self.undone(plan, error)
        }
    }

    /// Makes SQLite's own commits, and announces the release to readers once all its content is there.
    func finish() throws {
        try performer.writable.finish()
        recordChanges()
        try Announcement(generation: plan.to.generation, transaction: plan.id).write(transaction.layout)
    }

    /// Records the changed rows for readers. Without a record, they read everything again.
    private func recordChanges() {
        do {
            let changes = try performer.writable.changedRows()
            guard let from = plan.from?.generation, !changes.isEmpty else { return }
            try ChangeRecord(from: from, to: plan.to.generation, transaction: plan.id, databases: changes)
                .write(ofUpdateIn: transaction.layout)
        } catch { report(.warning("The changed rows were not recorded, so apps read everything again: \("\(error)")")) }
    }

    private func undo(_ begun: [Effect], because reason: any Error) throws {
        stopwatch.begin(.undo, "undo")
        do {
            try transaction.journal.undoing("\(reason)")
            try undoEffects(begun)
            try performer.writable.releaseAll()
        } catch { throw Self.stuck(plan, undoing: reason, failed: error) }
    }

    /// Returns the step that applies the effect itself; nil if the core does.
    private func ownStep(of effect: Effect) throws -> (any CustomStep)? {
        guard effect.isCustom else { return nil }
        guard let step = try step(of: effect) as? any CustomStep else { throw missing(effect) }
        return step
    }

    private func step(of effect: Effect) throws -> any Step {
        guard let step = steps.named(effect.step) else { throw missing(effect) }
        return step
    }

    private func missing(_ effect: Effect) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the step \(effect.step) is missing", why: "the unfinished update needs this step",
            now: "With a version of moult that has this step, run: \(moult: "recover")")
    }

    static func undone(_ plan: Plan, _ reason: any Error) -> MoultError {
        let parts = reason as? MoultError
        return MoultError(
            // Exit status 75 tells a script to try again later.
            .undone, parts?.outcome == .busy ? .busy : .undone,
            what: "the \(plan.title) failed and was undone: \(plan.stateAfterUndo)",
            why: parts.map { [$0.what, $0.why].compactMap(\.self).joined(separator: ": ") } ?? "\(reason)",
            now: parts?.now,
            cause: reason)
    }

    /// Returns the error for an update that is partly committed: the next command does the rest, and nothing is undone.
    static func irrevocable(_ plan: Plan, _ reason: any Error) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the \(plan.title) is not finished, and can no longer be undone",
            why: "\(reason)", now: "Fix the cause, then run: \(moult: "recover")", cause: reason)
    }

    static func stuck(_ plan: Plan, undoing reason: any Error, failed: any Error) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the \(plan.title) failed and could not be undone", why: "\(failed)",
            now: "Fix the cause, then run: \(moult: "recover")", cause: reason)
    }
}

/// Records the intents of steps in the update's journal.
private struct JournaledIntents: Intents {
    let journal: Journal

    func add(_ intent: JSON, for effect: Effect) throws { try journal.intend(intent, for: effect) }
    func all(for effect: Effect) throws -> [JSON] {
        try journal.read().intents.filter { $0.effect == effect }.map(\.intent)
    }
}
