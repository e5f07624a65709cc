internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension Orchestrator {
    package func holds() throws -> Holds { try snapshot().holds }

    /// The result of a change to the holds: the removed or replaced holds, and all that remain.
    package struct HoldChange: Sendable {
        package var removed: [Hold] = []
        package var holds: Holds
    }

    package func hold(_ new: [Hold], wait: Int = 0) throws -> HoldChange {
        try change("hold", new.map(\.release), reason: new.first?.reason, wait) { holds in
            new.compactMap { holds.place($0) }
        }
    }

    /// Removes the holds on these releases, written exactly as in the holds. Without releases, removes the store's only hold,
    /// and throws if there are several.
    package func unhold(_ releases: [String] = [], wait: Int = 0) throws -> HoldChange {
        let before = try holds()
        if before.all.isEmpty { return HoldChange(holds: before) }
        return try change("unhold", releases, wait) { holds in
            if releases.isEmpty, holds.all.count > 1 { throw Self.several(holds) }
            for release in releases where holds.hold(on: release) == nil {
                if let refusal = Self.notHeld(release, holds) { throw refusal }
            }
            let removed = holds.all.filter { releases.isEmpty || releases.contains($0.release) }
            holds.remove { removed.contains($0) }
            return removed
        }
    }

    /// Removes all holds, even from a record that cannot be read.
    package func unholdAll(wait: Int = 0) throws -> HoldChange {
        let before = try holds()
        if before.all.isEmpty { return HoldChange(holds: before) }
        return try change("unhold", [], wait) { holds in
            let removed = holds.all
            holds.removeAll()
            return removed
        }
    }

    /// Recreates the record of the holds if it cannot be read. Requires the lock.
    func rebuildHolds() throws {
        guard let fault = try holds().fault else { return }
        var holds: [Hold] = []
        try Holds.change(layout) { holds = $0.all }
        watcher.tell(
            .warning("\(fault). The record was rebuilt from the history; to see the holds: \(moult: "status")"))
        try appendHistory("rebuild", ["holds"], reason: fault, holds)
    }

    /// Removes the unreadable lines from the history, and adds a line with the present holds, which the lost lines may have
    /// contained. Requires the lock.
    func repairHistory(_ moved: String?) throws {
        let damaged =
            try [moved ?? History.dropDamagedLines(layout)].compactMap(\.self) + History.moveDamagedParts(layout)
        if damaged.isEmpty { return }
        for file in damaged {
            watcher.tell(
                .warning("\(layout.history) was damaged and was repaired; the damaged file was kept as \(file)"))
        }
        try appendHistory("repair", ["history"], reason: nil, holds().all)
    }

    private func change(
        _ action: String, _ releases: [String], reason: String? = nil, _ wait: Int,
        _ body: (inout Holds) throws -> [Hold]
    ) throws -> HoldChange {
        var removed: [Hold] = []
        _ = try locked(wait) { store, recovered in
            let before = try store.holds
            // Syncs the removal of transactions: a rollback that reappears after a power failure would place its hold again.
            try Files.syncDirectory(layout.transactions)
            try Holds.change(layout) { removed = try body(&$0) }
            let after = try holds()
            if after != before {
                let named = releases.isEmpty ? removed.map(\.release) : releases
                warning { try appendHistory(action, named, reason: reason, after.all) }
            }
            return Result(recovered: recovered)
        }
        return HoldChange(removed: removed, holds: try holds())
    }

    private func appendHistory(_ action: String, _ releases: [String], reason: String?, _ holds: [Hold]) throws {
        let installed = try Generation.currentName(layout) ?? ""
        try History.append(
            History.Entry(
                transaction: Planner.newID(), action: ([action] + releases).joined(separator: " "), from: installed,
                to: installed, outcome: .done, reason: reason, holds: holds), to: layout)
    }

    private static func several(_ holds: Holds) -> MoultError {
        MoultError(
            .refused, .refused, what: "the store has \(holds.all.count) holds",
            why: holds.all.map(\.sentence).joined(separator: "; "),
            now: "Choose the ones to remove, or remove all of them with: \(moult: "unhold", "--all")")
    }

    /// Returns why a release without a hold of its own remains blocked; nil if it is not blocked.
    private static func notHeld(_ release: String, _ holds: Holds) -> MoultError? {
        guard let version = Version(release) else { return nil }
        let covering = holds.covering(version)
        guard let first = covering.first else { return nil }
        return MoultError(
            .refused, .refused, what: "\(release) has no hold of its own", why: first.sentence,
            now: holds.remedy(covering))
    }
}
