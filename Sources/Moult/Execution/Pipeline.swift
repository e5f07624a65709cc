internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
package import StepKit

/// Takes a plan through its two passes: everything is staged and verified; then, after the decision, applied.
package struct Pipeline {
    let transaction: Transaction
    let steps: StepSet
    let watcher: Watcher
    let prepared: Planner.PreparedPlan
    let consumers: ConsumerCalls
    let stopwatch: Stopwatch

    package init(
        transaction: Transaction, steps: StepSet, watcher: Watcher, prepared: Planner.PreparedPlan,
        consumers: ConsumerCalls,
        stopwatch: Stopwatch
    ) {
        (self.transaction, self.steps, self.watcher) = (transaction, steps, watcher)
        (self.prepared, self.consumers, self.stopwatch) = (prepared, consumers, stopwatch)
    }

    var plan: Plan { prepared.plan }
    private var release: Manifest { prepared.context.release }

    /// Executes the plan. On an error the store is as it was before, or the error's outcome is `stuck`. The caller removes the
    /// staged files, because consumers are notified first, and must not encounter moult's locks.
    ///
    package func run() throws -> Outcome {
        let performer = Performer(
            transaction: transaction, plan: plan, installed: prepared.context.installed, release: release)
        do {
            try watcher.stoppingStatements {
                try transaction.create(plan)
                // If the process crashes, recovery needs this manifest to tell the outcome to steps that are not built in.
                if !steps.others(of: plan).isEmpty { try Files.writeNew(prepared.bytes, to: transaction.manifest) }
                try prepare()
                try watcher.stopIfAsked()
                // Consumers are called only after all checks of the release have passed, so that a bad release disturbs no app,
                // and apps release their databases only briefly.
                stopwatch.begin(.prepare, "consumers")
                consumers.findChangedTables(from: prepared.context.installed, to: release)
                try consumers.release()
                stopwatch.begin(.prepare, "decide")
                try performer.hold(stop: watcher.stopIfAsked)
                try watcher.stopIfAsked()
            }
            try decide(performer)
        } catch {
            // Nothing visible has changed, so removing the staged files will undo everything.
            do { try performer.releaseAll() } catch let second { throw NotReleased(reason: error, second: second) }
            throw error
        }
        OpenDecision.begin()
        defer { OpenDecision.end() }
        watcher.tell(.decided)
        try Applier(
            transaction: transaction, plan: plan, steps: steps, context: prepared.context, performer: performer,
            tell: watcher.tell, stopwatch: stopwatch
        )
        .applyOrUndo()
        return Outcome(rows: try performer.fates(), postponed: performer.postponed)
    }

    /// The error of an update that failed before the decision, and then could not release the databases. The next command needs
    /// the staged files.
    package struct NotReleased: Error {
        package let reason: any Error
        package let second: any Error
    }

    package struct Outcome {
        /// The fate of the rows of each database.
        package let rows: [RowFate]
        /// The caches that stay as they are, because other processes are using them.
        package let postponed: [Plan.Pending]
    }

    private func prepare() throws {
        let preparation = Preparation(
            transaction: transaction, steps: steps, watcher: watcher, prepared: prepared, stopwatch: stopwatch)
        try preparation.run()
        try seal(preparation)
    }

    /// Seals the new generation, if the plan installs one.
    private func seal(_ preparation: Preparation) throws {
        let isNew = plan.effects.contains { if case .installGeneration = $0.change { true } else { false } }
        guard isNew else { return }
        stopwatch.begin(.prepare, "seal")
        try preparation.context.progress(.init("make the files read-only", done: 0, total: 0))
        var signers = prepared.incoming.provenance.signers?.map(\.description)
        if prepared.incoming.provenance == .kept {
            // A damaged seal has no signers.
            signers = (try? prepared.store.generation(plan.to.generation).seal())?.signers
        }
        try GenerationSealer(
            transaction: transaction, manifest: release, bytes: prepared.bytes, feedSerial: plan.origin?.serial,
            keys: KeyChain.mark(prepared.store.settings, in: transaction.layout), signers: signers,
            changed: Set(plan.effects.filter(\.isCustom).compactMap(\.database)),
            proven: preparation.proven
        )
        .finish()
    }

    private func decide(_ performer: Performer) throws {
        // Syncs the names of staged files, in case of a power failure after the decision; their content is synced already.
        for directory in Set(plan.stagedPaths.map { Files.directory(of: transaction.waiting($0)) }).sorted() {
            try Files.syncDirectory(directory)
        }
        try transaction.journal.decide(plan, markers: performer.markers())
    }
}
