internal import MoultBasics
internal import StepKit

/// Removes sets in quarantine, as far as the gate allows it.
extension QuarantineShelf {
    package struct Report: Sendable, Equatable {
        package var removed: [Set] = []
        /// The sets that are old enough to be removed but stay, each with the reason.
        package var kept: [(set: Set, why: String)] = []

        package init() {}

        package static func == (one: Report, other: Report) -> Bool {
            one.removed == other.removed && one.kept.map(\.set) == other.kept.map(\.set)
        }
    }

    /// Removes files that killed commands left in quarantine. Requires the store's lock.
    func sweep(except unfinished: [String]) throws {
        for root in roots { try Removable.sweep(quarantine: root, except: unfinished) }
    }

    /// Removes broken caches, oldest first, until the rest is within the operator's budget.
    func enforceBudget() throws -> Report {
        var report = Report()
        var left = try sets()
        for set in left where set.isCache && settings.quarantine.excess(of: left) != nil {
            try Removable(set, isNamed: false)?.removeSet()
            left.removeAll { $0.directory == set.directory }
            report.removed.append(set)
        }
        return report
    }

    /// Throws if an update would keep more than the budget allows, before its decision: its sets are in the quarantine already. Caches
    /// do not count, because they are removed at the end.
    func requireBudget(for transaction: String) throws {
        guard try sets(of: transaction).contains(where: { !$0.isCache }),
            let excess = try settings.quarantine.excess(of: sets().filter { !$0.isCache })
        else { return }
        throw MoultError(
            .quarantine, .refused, what: "the update would keep more in quarantine than its budget allows", why: excess,
            now: "Nothing was changed. " + QuarantineBudget.advice)
    }

    /// Removes sets that are older than a number of days, but sets with user data only with `includingUserData`, and a file from
    /// before moult only if its set is named. `name` limits this to a set or a database. With `dry`, only reports them.
    package func clean(
        olderThan days: Int, of name: String? = nil, includingUserData: Bool, dry: Bool
    ) throws -> Report {
        var report = Report()
        let limit = Timestamp.now.seconds - days * 86_400
        for set in try sets() where set.since.seconds <= limit {
            if let name, name != set.id, name != set.record?.database { continue }
            let isForeign = set.record?.reason == .foreign
            guard let removable = Removable(set, isNamed: includingUserData && (!isForeign || name == set.id)) else {
                report.kept.append(
                    (
                        set,
                        isForeign
                            ? "the file existed before moult; only its own name removes it" : "it contains user data"
                    ))
                continue
            }
            if !dry { try removable.removeSet() }
            report.removed.append(set)
        }
        return report
    }
}
