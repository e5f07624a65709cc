internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Carries out a plan. `run` is the whole sequence; `rehearse` does what needs no lock, on private copies. After a crash,
/// recovery calls `holdAgain`, `applyEffects` and `finish`, or `undoEffects`.
package struct Execution {
    let transaction: Transaction
    let plan: Plan
    let writable: WritableEffects
    private let prepared: Planner.PreparedPlan
    private let steps: StepSet
    private let watcher: Watcher
    private let stopwatch: Stopwatch

    /// `decided` has the markers of the databases at the decision, when an update is recovered.
    package init(
        _ prepared: Planner.PreparedPlan, in transaction: Transaction, steps: StepSet, watcher: Watcher,
        stopwatch: Stopwatch = Stopwatch(), decided: [String: String?]? = nil
    ) {
        (self.prepared, self.transaction, plan, self.steps) = (prepared, transaction, prepared.plan, steps)
        (self.watcher, self.stopwatch) = (watcher, stopwatch)
        writable = WritableEffects(
            transaction: transaction, plan: plan, decided: decided, installed: prepared.context.installed,
            release: prepared.context.release)
    }

    private var release: Manifest { prepared.context.release }
    /// The previously installed release, whose links an undo must leave or restore.
    var installed: Manifest? { prepared.context.installed }
    var layout: StoreLayout { transaction.layout }

    private var preparing: PrepareContext {
        let (watcher, show) = (watcher, show)
        return PrepareContext(
            plan: prepared.context, staging: transaction.directory, stagedGeneration: transaction.generation,
            progress: { progress in
                try watcher.stopIfAsked()
                show(.progress(progress))
            }, warn: { show(.warning(Advice($0))) })
    }

    private var applying: ApplyContext {
        ApplyContext(plan: prepared.context, staging: transaction.directory, intents: transaction.journal)
    }

    /// Reports an event. Recovery does not report the single effects.
    private var show: @Sendable (Event) -> Void {
        if writable.isRecovery { return { _ in } }
        return watcher.tell
    }
    func warn(_ text: Advice) { watcher.tell(.warning(text)) }

    package struct Outcome {
        package let rows: [RowFate]
        let postponed: [Plan.Pending]
    }

    // MARK: the sequence

    /// Executes the plan. On an error the store is as it was before, or the error is `NotReleased` or its outcome is `stuck`. The
    /// caller removes the staged files, because consumers are notified first, and must not encounter moult's locks.
    package func run(calling consumers: ConsumerCalls) throws -> Outcome {
        do {
            try watcher.stoppingStatements {
                try transaction.create(plan)
                // If the process crashes, recovery needs this manifest to tell the outcome to steps that are not built in.
                if !steps.others(of: plan).isEmpty { try Files.writeNew(prepared.bytes, to: transaction.manifest) }
                try stage()
                try seal()
                try watcher.stopIfAsked()
                // Consumers are called only after all checks of the release have passed, so that a bad release disturbs no app,
                // and apps release their databases only briefly.
                stopwatch.begin(.prepare, "consumers")
                consumers.findChangedTables(from: installed, to: release)
                try consumers.release()
                stopwatch.begin(.prepare, "decide")
                // Examines and locks every writable database, carries rows over, keeps what would be lost, and copies all pages
                // but the last.
                try writable.hold(stop: watcher.stopIfAsked)
                if plan.purpose == .update {
                    try QuarantineShelf(layout: transaction.layout, settings: prepared.store.settings).requireBudget(
                        for: plan.id)
                }
                try watcher.stopIfAsked()
            }
            try decide()
        } catch {
            // Nothing was committed: releasing the databases rolls the copied pages back, and removing the staged files undoes the rest.
            do { try writable.releaseAll() } catch let second { throw NotReleased(reason: error, second: second) }
            throw error
        }
        OpenDecision.begin()
        defer { OpenDecision.end() }
        watcher.tell(.decided)
        try applyOrUndo()
        return Outcome(rows: try writable.fates(), postponed: writable.postponed)
    }

    /// Returns the plan with what happens to each row; throws if an update would be refused. The store and its databases do not
    /// change.
    func rehearse() throws -> Plan {
        var (plan, trial) = (plan, prepared)
        // Files outside of the store are caches, which are created again and have no rows to count.
        trial.plan.effects.removeAll { $0.change.traits.paths.contains(where: \.isAbsolutePath) }
        let execution = Execution(trial, in: transaction, steps: steps, watcher: watcher)
        try watcher.stoppingStatements {
            try transaction.create(trial.plan)
            try execution.stage()
            try execution.writable.rehearse(&plan)
        }
        return plan
    }

    /// The error of an update that failed before the decision, and then could not release the databases. The next command needs
    /// the staged files.
    package struct NotReleased: Error {
        package let reason: any Error
        package let second: any Error
    }

    // MARK: stage and examine

    /// Stages and verifies the release in the directory of the transaction; locks nothing.
    private func stage() throws {
        try prepare(.check)
        try unpack()
        try watcher.stopIfAsked()
        // Before any of the received files is copied, changed or attached.
        for phase in Phase.allCases { try call(phase) { step, effects in try step.examine(effects, preparing) } }
        for phase in [Phase.delete, .copy, .attach, .verify] { try prepare(phase) }
    }

    private func prepare(_ phase: Phase) throws {
        try watcher.stopIfAsked()
        watcher.tell(.phase(.prepare, phase))
        try call(phase) { step, effects in try step.prepare(effects, preparing) }
    }

    private func call(_ phase: Phase, _ body: (any Step, [Effect]) throws -> Void) throws {
        for step in steps.steps(of: phase, for: release, plan.purpose) {
            stopwatch.begin(.prepare, step.name)
            try body(step, plan.effects.filter { $0.phase == phase && $0.step == step.name })
        }
    }

    private func unpack() throws {
        if plan.members.isEmpty { return }
        stopwatch.begin(.prepare, "unpack")
        try MemberStager(
            transaction: transaction, store: prepared.store, plan: plan, release: release, progress: preparing.progress
        ).stage()
    }

    /// Completes the staged generation, if the plan installs one: writes the signed manifest, and the seal that identifies the
    /// generation's files later.
    private func seal() throws {
        let isNew = plan.effects.contains { if case .installGeneration = $0.change { true } else { false } }
        guard isNew else { return }
        stopwatch.begin(.prepare, "seal")
        try preparing.progress(.init("make the files read-only", done: 0, total: 0))
        let (directory, provenance) = (transaction.generation, prepared.incoming.provenance)
        // Steps may have changed these after they were unpacked and verified.
        let changed = Set(plan.effects.filter(\.isCustom).compactMap(\.database))
        // Files shared with another generation are already read-only. Their last hard link has been made, so their metadata is
        // recorded again.
        let linked = try Set(LinkedFiles(layout).records().map(\.inode))
        try LinkedFiles(layout).refresh()
        let entries = try release.databases.map { database in
            let path = "\(directory)/\(database.member)"
            // The file is sealed after all checks, when most of it has been written back, and before its times are recorded.
            let isLinked = try Files.facts(path).map { linked.contains($0.inode) } ?? false
            if database.place == .generation, !isLinked { try Files.seal(path, mode: 0o444) }
            guard let facts = try Files.factsThroughLinks(path) else {
                throw MoultError(
                    .generation, what: "\(path) was not staged", why: "no step created it",
                    now: "Report this as a bug in moult.")
            }
            let isPublished = !changed.contains(database.name) || database.place == .inPlace
            let digest = try isPublished ? database.sha256 : SHA256.digest(ofFileAt: path).hex
            var entry = Seal.Entry(member: database.member, sha256: digest, facts: facts)
            entry.isProvenByPublisher = isPublished && prepared.context.carriedProof(of: database) != nil
            return entry
        }
        try Files.writeNew(prepared.bytes, to: "\(directory)/\(Generation.manifestName)", mode: 0o444)
        var seal = Seal(entries: entries, feedSerial: plan.origin?.serial)
        (seal.manifest, seal.transaction) = (try SHA256.digest(of: prepared.bytes).hex, transaction.id)
        seal.keys = try KeyChain.mark(prepared.store.settings, in: layout)
        // A damaged seal has no signers.
        let kept = provenance == .kept ? try? prepared.store.generation(plan.to.generation).seal() : nil
        seal.signers = kept?.signers ?? provenance.signers?.map(\.description)
        try Files.writeNew(Array(seal.json.line.utf8), to: "\(directory)/\(Seal.fileName)", mode: 0o444)
        // Syncs the directory entries, so that a power failure after the switch cannot lose them. The writer of each file has
        // already synced its content.
        try Files.syncDirectory(directory)
    }

    // MARK: decide

    private func decide() throws {
        // Syncs the names of staged files, in case of a power failure after the decision; their content is synced, but for
        // files that SQLite copies from: recovery makes those again.
        for directory in Set(plan.stagedPaths.map { Files.directory(of: transaction.waiting($0)) }).sorted() {
            try Files.syncDirectory(directory)
        }
        try transaction.journal.decide(plan, markers: writable.markers(), isSynced: writable.hasSyncedJournal)
    }

    // MARK: apply, or undo

    /// Holds the databases of an interrupted update with their present rows. Stages every replacement again that is not yet in place.
    func holdAgain() throws {
        for effect in plan.effects {
            guard case .replace(let new) = effect.change, try !writable.isDone(effect) else { continue }
            // The staged copy is removed with its sidecars: if a crash in the middle of a write left them, SQLite would apply
            // them to the new copy.
            for suffix in SidecarSuffixes.all + [""] { try Files.remove(transaction.waiting(new.path) + suffix) }
            try steps.named(effect.step)?.prepare([effect], preparing)
        }
        try writable.hold()
    }

    /// Applies the effects; throws at the first one that fails.
    func applyEffects(begun: (Effect) -> Void = { _ in }) throws {
        // The hold comes before the first effect, so that the release that a rollback replaces is always on hold.
        try plan.placeHold(transaction.layout)
        var phase: Phase?
        for effect in plan.effects {
            if effect.phase != phase {
                phase = effect.phase
                show(.phase(.apply, effect.phase))
            }
            begun(effect)
            stopwatch.begin(.apply, effect.step)
            if let own = try ownStep(of: effect) { try own.apply(effect, applying) } else { try perform(effect) }
            if !writable.isSkipped(effect.database) {
                do { try step(of: effect).check(effect, applying) } catch let error as MoultError {
                    try writable.leaveIfRecovered(effect, error)
                }
            }
            show(.done(.apply, effect))
        }
    }

    func undoEffects(_ effects: [Effect]) throws {
        for effect in effects.reversed() {
            if let own = try ownStep(of: effect) { try own.undo(effect, applying) } else { try revert(effect) }
            if effect.changesStore { show(.done(.undo, effect)) }
        }
        try plan.withdrawHold(transaction.layout)
        try withdrawAnnouncement()
    }

    /// Announces the old release again, if readers may have seen the new one already.
    private func withdrawAnnouncement() throws {
        let layout = transaction.layout
        guard try Announcement.read(layout)?.transaction == plan.id else { return }
        guard let from = plan.from?.generation else { return try Files.remove(layout.announced) }
        try Announcement(generation: from, transaction: Planner.newID()).write(layout)
    }

    func clean(_ ending: Ending) {
        for step in steps.others(of: plan) { do { try step.clean(ending, applying) } catch { warn("\(error)") } }
    }

    /// Applies the effects. If one fails, undoes those that were begun; the undo is exact, because no other process can have
    /// changed the store meanwhile.
    private func applyOrUndo() throws {
        var begun: [Effect] = []
        do {
            try applyEffects { begun.append($0) }
            stopwatch.begin(.apply, "finish")
            try finish()
        } catch {
            if writable.isIrrevocable {
                // Recovery does the rest of an update that is partly committed; nothing is undone.
                throw stuck("is not finished, and can no longer be undone", because: error, cause: error)
            }
            try undo(begun, because: error)
            throw undone(error)
        }
    }

    /// Makes SQLite's own commits, and announces the release to readers once all its content is there.
    func finish() throws {
        try writable.finish()
        recordChanges()
        try Announcement(generation: plan.to.generation, transaction: plan.id).write(transaction.layout)
    }

    /// Records the changed rows for readers. Without a record, they read everything again.
    private func recordChanges() {
        do {
            let changes = try writable.changedRows()
            guard let from = plan.from?.generation, !changes.isEmpty else { return }
            try ChangeRecord(from: from, to: plan.to.generation, transaction: plan.id, databases: changes)
                .write(ofUpdateIn: transaction.layout)
        } catch { warn("The changed rows were not recorded, so apps read everything again: \("\(error)")") }
    }

    private func undo(_ begun: [Effect], because reason: any Error) throws {
        stopwatch.begin(.undo, "undo")
        do {
            try transaction.journal.undoing("\(reason)")
            try undoEffects(begun)
            try writable.releaseAll()
        } catch { throw stuck("failed and could not be undone", because: error, cause: reason) }
    }

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

    // MARK: errors

    private func undone(_ reason: any Error) -> MoultError {
        let parts = reason as? MoultError
        return MoultError(
            // Exit status 75 tells a script to try again later.
            .undone, parts?.outcome == .busy ? .busy : .undone,
            what: "the \(plan.title) failed and was undone: \(plan.stateAfterUndo)",
            why: reason.problem, now: parts?.now, cause: reason)
    }

    private func stuck(_ what: String, because why: any Error, cause: any Error) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the \(plan.title) \(what)", why: "\(why)",
            now: "Fix the cause, then run: \(moult: "recover")", cause: cause)
    }
}
