package import MoultStore
internal import StepKit

extension Plan {
    /// Places the hold on the release that a rollback replaces. Can be repeated.
    func placeHold(_ layout: StoreLayout) throws {
        guard var hold else { return }
        hold.transaction = id
        try Holds.change(layout) { holds in
            if holds.hold(on: hold.release) != hold { holds.place(hold) }
        }
    }

    /// Removes the hold of a rollback that is undone, and no other.
    func withdrawHold(_ layout: StoreLayout) throws {
        guard hold != nil else { return }
        try Holds.change(layout) { holds in
            guard holds.all.contains(where: { $0.transaction == id }) else { return }
            holds.remove { $0.transaction == id }
            if let replacedHold { holds.place(replacedHold) }
        }
    }
}

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
