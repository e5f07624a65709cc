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
