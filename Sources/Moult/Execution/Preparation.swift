internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Stages and verifies a release in the directory of a transaction, and locks nothing: the first part of an update, and of a deep plan.
struct Preparation {
    let transaction: Transaction
    let steps: StepSet
    let watcher: Watcher
    let prepared: Planner.PreparedPlan
    let stopwatch: Stopwatch
    let context: PrepareContext
    /// The databases covered by the publisher's proof.
    let proven: Set<String>

    init(
        transaction: Transaction, steps: StepSet, watcher: Watcher, prepared: Planner.PreparedPlan, stopwatch: Stopwatch
    ) {
        (self.transaction, self.steps, self.watcher) = (transaction, steps, watcher)
        (self.prepared, self.stopwatch) = (prepared, stopwatch)
        context = PrepareContext(
            plan: prepared.context, staging: transaction.directory, stagedGeneration: transaction.generation,
            progress: { progress in
                try watcher.stopIfAsked()
                watcher.tell(.progress(progress))
            },
            warn: { watcher.tell(.warning($0)) })
        let release = prepared.context.release
        proven = Set(release.databases.filter { prepared.context.carriedProof(of: $0) != nil }.map(\.name))
    }

    private var plan: Plan { prepared.plan }
    private var release: Manifest { prepared.context.release }

    /// Stages and verifies everything, in this order.
    func run() throws {
        try prepare(.check)
        let digests = try unpack()
        try examine(digests)
        try prepare(.delete)
        try prepare(.copy)
        try prepare(.attach)
        try prepare(.verify)
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

    /// Unpacks the members that the plan needs; returns their digests, which are computed in the background.
    private func unpack() throws -> UnpackedDigests? {
        if plan.members.isEmpty { return nil }
        stopwatch.begin(.prepare, "unpack")
        return try MemberStager(
            transaction: transaction, store: prepared.store, plan: plan, release: release, proven: proven,
            progress: context.progress
        )
        .stage()
    }

    /// Verifies all received files before any of them is copied, changed or attached.
    private func examine(_ digests: UnpackedDigests?) throws {
        do {
            for phase in Phase.allCases { try call(phase) { step, effects in try step.examine(effects, context) } }
        } catch {
            try watcher.stopIfAsked()
            // If the file differs from the published one, that is the reason to report, however the check failed.
            try digests?.verify()
            throw error
        }
        stopwatch.begin(.prepare, "digest")
        try digests?.verify()
    }
}
