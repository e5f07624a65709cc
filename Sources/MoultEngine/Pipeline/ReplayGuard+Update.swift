package import MoultStore
internal import StepKit

extension ReplayGuard {
    /// Records a finished update before its transaction is removed. Recovery also calls this when it finishes an update:
    /// without this record, an older release could return after a rollback.
    package static func note(_ plan: Plan, _ transaction: Transaction) throws {
        guard plan.purpose == .update, let release = try transaction.release(of: plan) else { return }
        try note(sequence: release.sequence, resetting: plan.request.takesOlder, transaction.layout)
    }

    /// Records the sequence of the installed release. With `resetting`, because the operator accepts older releases, a lower
    /// sequence replaces the recorded one.
    private static func note(sequence: Int, resetting: Bool, _ layout: StoreLayout) throws {
        let before = try read(layout)
        var now = before
        now.sequence = resetting ? sequence : max(before.sequence, sequence)
        if try now != before || !isThere(layout) { try now.write(layout, durable: false) }
    }
}
