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
        let performer = Performer(
            transaction: transaction, plan: plan, inodes: [:], installed: made.context.installed, release: release)
        do {
            try transaction.create(plan)
            try prepare()
            try watcher.stopIfAsked()
            try performer.engage()
            try decide(performer)
        } catch {
            // Nothing visible has changed, so removing what was staged undoes all of it.
            do {
                try performer.rest()
                try transaction.remove()
            } catch let second {
                // The next command cleans up, and the first error is the one to tell; but the decision's record may be
                // there although its sync failed, and then the next command would not clean up but go on.
                if (try? transaction.journal.read().decided) != .some(nil) { throw undecided(error, second) }
            }
            throw error
        }
        watcher.tell(.decided)
        try Applier(
            transaction: transaction, plan: plan, steps: steps, context: made.context, performer: performer,
            tell: watcher.tell
        )
        .applyOrUndo()
    }

    private func undecided(_ reason: any Error, _ second: any Error) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the update to \(release.version) failed, but the next command may finish it",
            why: "\(reason); and then: \(second)",
            now: "Nothing has changed yet. Mend that, then finish it: moult recover, or drop it: moult recover --undo",
            cause: reason)
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
            for step in steps.steps(of: phase, for: release, plan.purpose) {
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
            try GenerationSealer(
                transaction: transaction, manifest: release, bytes: made.bytes, feedSerial: plan.origin?.serial
            )
            .finish()
        }
    }

    private func decide(_ performer: Performer) throws {
        // The names of what waits, for a power cut after the decision: their content is synced already.
        for directory in Set(plan.made.map { Files.directory(of: transaction.waiting($0)) }).sorted() {
            try Files.syncDirectory(directory)
        }
        performer.inodes = try transaction.inodes(of: plan).merging(performer.counters()) { $1 }
        try transaction.journal.decide(inodes: performer.inodes)
    }
}
