package import MoultStore
internal import StepKit

extension ReplayGuard {
    /// Notes a finished update, before its transaction is removed: recovery finishes updates as well, and without this an
    /// older release could come back after a rollback.
    package static func note(_ plan: Plan, _ transaction: Transaction) throws {
        guard plan.purpose == .update, let release = try transaction.release(of: plan) else { return }
        try note(sequence: release.sequence, resetting: plan.request.takesOlder, transaction.layout)
    }

    /// Records the installed release; `resetting` starts from there, because the operator said so.
    private static func note(sequence: Int, resetting: Bool, _ layout: StoreLayout) throws {
        let before = try read(layout)
        var now = before
        now.sequence = resetting ? sequence : max(before.sequence, sequence)
        if try now != before || !isThere(layout) { try now.write(layout, durable: false) }
    }
}
