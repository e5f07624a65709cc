internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Carries out a plan. `run` is the whole sequence; `rehearse` is the same up to the decision, on private copies.
package struct Execution {
    private let transaction: Transaction
    private let steps: StepSet
    private let watcher: Watcher
    private let prepared: Planner.PreparedPlan
    private let stopwatch: Stopwatch
    private let context: PrepareContext

    package init(
        _ prepared: Planner.PreparedPlan, in transaction: Transaction, steps: StepSet, watcher: Watcher,
        stopwatch: Stopwatch = Stopwatch()
    ) {
        (self.prepared, self.transaction, self.steps) = (prepared, transaction, steps)
        (self.watcher, self.stopwatch) = (watcher, stopwatch)
        context = PrepareContext(
            plan: prepared.context, staging: transaction.directory, stagedGeneration: transaction.generation,
            progress: { progress in
                try watcher.stopIfAsked()
                watcher.tell(.progress(progress))
            },
            warn: { watcher.tell(.warning(Advice($0))) })
    }

    private var plan: Plan { prepared.plan }
    private var release: Manifest { prepared.context.release }

    package struct Outcome {
        /// The fate of the rows of each database.
        package let rows: [RowFate]
        /// The caches that stay as they are, because other processes are using them.
        let postponed: [Plan.Pending]
    }

    // MARK: the sequence

    /// Executes the plan. On an error the store is as it was before, or the error's outcome is `stuck`. The caller removes the
    /// staged files, because consumers are notified first, and must not encounter moult's locks.
    package func run(calling consumers: ConsumerCalls) throws -> Outcome {
        let performer = Performer(
            transaction: transaction, plan: plan, installed: prepared.context.installed, release: release)
        let writable = performer.writable
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
                consumers.findChangedTables(from: prepared.context.installed, to: release)
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
            try decide(writable)
        } catch {
            // Nothing was committed: releasing the databases rolls the copied pages back, and removing the staged files undoes the rest.
            do { try writable.releaseAll() } catch let second { throw NotReleased(reason: error, second: second) }
            throw error
        }
        OpenDecision.begin()
        defer { OpenDecision.end() }
        watcher.tell(.decided)
        // Recovery after a crash continues here.
        try Applier(
            transaction: transaction, plan: plan, steps: steps, context: prepared.context, performer: performer,
            tell: watcher.tell, stopwatch: stopwatch
        )
        .applyOrUndo()
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
            let effects = WritableEffects(
                transaction: transaction, plan: trial.plan, decided: nil, installed: prepared.context.installed,
                release: release)
            try effects.rehearse(&plan)
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
        for phase in Phase.allCases { try call(phase) { step, effects in try step.examine(effects, context) } }
        for phase in [Phase.delete, .copy, .attach, .verify] { try prepare(phase) }
    }

    /// Lets the steps of a phase prepare their effects.
    private func prepare(_ phase: Phase) throws {
        try watcher.stopIfAsked()
        watcher.tell(.phase(.prepare, phase))
        try call(phase) { step, effects in try step.prepare(effects, context) }
    }

    private func call(_ phase: Phase, _ body: (any Step, [Effect]) throws -> Void) throws {
        for step in steps.steps(of: phase, for: release, plan.purpose) {
            stopwatch.begin(.prepare, step.name)
            try body(step, plan.effects.filter { $0.phase == phase && $0.step == step.name })
        }
    }

    /// Unpacks and verifies the members that the plan needs.
    private func unpack() throws {
        if plan.members.isEmpty { return }
        stopwatch.begin(.prepare, "unpack")
        try MemberStager(
            transaction: transaction, store: prepared.store, plan: plan, release: release, progress: context.progress
        )
        .stage()
    }

    /// The databases covered by the publisher's proof.
    private var proven: Set<String> {
        Set(release.databases.filter { prepared.context.carriedProof(of: $0) != nil }.map(\.name))
    }

    /// Seals the new generation, if the plan installs one.
    private func seal() throws {
        let isNew = plan.effects.contains { if case .installGeneration = $0.change { true } else { false } }
        guard isNew else { return }
        stopwatch.begin(.prepare, "seal")
        try context.progress(.init("make the files read-only", done: 0, total: 0))
        var signers = prepared.incoming.provenance.signers?.map(\.description)
        if prepared.incoming.provenance == .kept {
            // A damaged seal has no signers.
            signers = (try? prepared.store.generation(plan.to.generation).seal())?.signers
        }
        try GenerationSealer(
            transaction: transaction, manifest: release, bytes: prepared.bytes, feedSerial: plan.origin?.serial,
            keys: KeyChain.mark(prepared.store.settings, in: transaction.layout), signers: signers,
            changed: Set(plan.effects.filter(\.isCustom).compactMap(\.database)),
            proven: proven
        )
        .finish()
    }

    // MARK: decide

    private func decide(_ writable: WritableEffects) throws {
        // Syncs the names of staged files, in case of a power failure after the decision; their content is synced already.
        for directory in Set(plan.stagedPaths.map { Files.directory(of: transaction.waiting($0)) }).sorted() {
            try Files.syncDirectory(directory)
        }
        try transaction.journal.decide(plan, markers: writable.markers(), isSynced: writable.hasSyncedJournal)
    }
}
