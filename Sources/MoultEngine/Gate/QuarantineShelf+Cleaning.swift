internal import MoultBasics
package import MoultStore

/// The sets that may be removed from quarantine, as the gate decides.
extension QuarantineShelf {
    package struct Report: Sendable, Equatable {
        package var removed: [Set] = []
        /// The sets that stay although they are as old as requested, and the reason.
        package var kept: [(set: Set, why: String)] = []

        package init() {}

        package static func == (one: Report, other: Report) -> Bool {
            one.removed == other.removed && one.kept.map(\.set) == other.kept.map(\.set)
        }
    }

    /// Removes what killed commands left there; needs the store's lock.
    func sweep(except unfinished: [String]) throws {
        for root in roots { try Removable.sweep(quarantine: root, except: unfinished) }
    }

    /// Removes broken caches, the oldest first, until the others are within the operator's limit.
    package func enforceLimit() throws -> Report {
        var report = Report()
        let caches = try sets().filter(\.isCache)
        var size = caches.reduce(0) { $0 + $1.size }
        for set in caches where size > settings.quarantineLimit {
            try Removable(set, isNamed: false)?.removeSet()
            size -= set.size
            report.removed.append(set)
        }
        return report
    }

    /// Empties it of what is older; people's data only on their own word. `dry` only says what it would do.
    package func clean(olderThan days: Int, includingUserData: Bool, dry: Bool) throws -> Report {
        var report = Report()
        let limit = Timestamp.now.seconds - days * 86_400
        for set in try sets() where set.since.seconds <= limit {
            guard let removable = Removable(set, isNamed: includingUserData) else {
                report.kept.append((set, "it contains user data"))
                continue
            }
            if !dry { try removable.removeSet() }
            report.removed.append(set)
        }
        return report
    }
}
