internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// A deep plan: an update without the decision. The release is staged and verified in a private directory, and rows and migrations are
/// tried on private copies of the databases, by the code that the update runs. The store and its databases do not change.
package struct Rehearsal {
    private let transaction: Transaction
    private let steps: StepSet
    private let watcher: Watcher
    private let prepared: Planner.PreparedPlan

    package init(transaction: Transaction, steps: StepSet, watcher: Watcher, prepared: Planner.PreparedPlan) {
        (self.transaction, self.steps, self.watcher) = (transaction, steps, watcher)
        // Files outside of the store are caches, which are created again and have no rows to count.
        var prepared = prepared
        prepared.plan.effects.removeAll { $0.change.traits.paths.contains(where: \.isAbsolutePath) }
        self.prepared = prepared
    }

    /// Returns the plan with what happens to each row; throws if an update would be refused.
    package func run(of plan: Plan) throws -> Plan {
        var plan = plan
        try watcher.stoppingStatements {
            try transaction.create(prepared.plan)
            try Preparation(
                transaction: transaction, steps: steps, watcher: watcher, prepared: prepared, stopwatch: Stopwatch()
            ).run()
            let effects = WritableEffects(
                transaction: transaction, plan: prepared.plan, decided: nil, installed: prepared.context.installed,
                release: prepared.context.release)
            try effects.rehearse(&plan)
        }
        return plan
    }
}
