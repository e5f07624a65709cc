internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Takes one plan through its two passes: everything is staged and proven, then decided, then done.
struct Pipeline {
    let transaction: Transaction
    let steps: StepSet
    let watcher: Watcher
    let made: Planner.Made

    var plan: Plan { made.plan }
    private var release: Manifest { made.context.release }

    /// Executes the plan; on an error everything is as it was before, or the error's outcome is `stuck`.
    func run() throws {
        try transaction.create(plan)
        do {
            try prepare()
            try watcher.stopIfAsked()
        } catch {
            // Before the decision nothing visible has changed, so removing what was staged undoes all of it. A failure
            // of that is not the error to tell: the next command cleans up.
            try? transaction.remove()
            throw error
        }
        let inodes = try decide()
        watcher.tell(.decided)
        let performer = Performer(
            transaction: transaction, plan: plan, inodes: inodes, installed: made.context.installed)
        try Applier(
            transaction: transaction, plan: plan, steps: steps, context: made.context, performer: performer,
            tell: watcher.tell
        )
        .applyOrUndo()
    }

    private func prepare() throws {
        let context = PrepareContext(
            plan: made.context, staging: transaction.directory, stagedGeneration: transaction.generation,
            progress: { [watcher] progress in
                try watcher.stopIfAsked()
                watcher.tell(.progress(progress))
            },
            warn: { [watcher] in watcher.tell(.warning($0)) })
        for phase in Phase.allCases {
            try watcher.stopIfAsked()
            watcher.tell(.phase(.prepare, phase))
            for step in steps.steps(of: phase, for: release) {
                try step.prepare(plan.effects.filter { $0.phase == phase && $0.step == step.name }, context)
            }
            if phase == .check, let bundle = plan.bundle {
                try Unpacker(
                    transaction: transaction, release: release, bundle: bundle.path, members: plan.members,
                    progress: context.progress
                )
                .unpack()
            }
        }
        if plan.effects.contains(where: { if case .seat = $0.change { true } else { false } }) {
            try GenerationSealer(transaction: transaction, manifest: release, bytes: made.bytes).finish()
        }
    }

    private func decide() throws -> [String: UInt64] {
        do {
            let inodes = try transaction.inodes()
            try transaction.journal.decide(inodes: inodes)
            return inodes
        } catch {
            // If the record reached the disk although the sync failed, the next command would go forward; without the
            // journal it cannot.
            try? transaction.remove()
            throw error
        }
    }
}
