internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Removes generations that are no longer needed.
package struct Collector {
    let layout: StoreLayout
    let settings: Settings

    package init(layout: StoreLayout, settings: Settings) { (self.layout, self.settings) = (layout, settings) }

    /// A surplus generation that stays, and why.
    package struct Kept: Sendable, Equatable {
        package let generation: String
        package let why: String
    }
    package struct Report: Sendable, Equatable {
        package var removed: [String] = []
        package var freed = 0
        package var kept: [Kept] = []

        package init() {}
    }

    /// Removes the oldest generations beyond `keep`, and those with a damaged manifest. Requires the store's lock. With `dry`,
    /// only reports them. Files in them that a program has changed are kept in quarantine, in sets of the update `id`.
    package func collect(keep: Int? = nil, dry: Bool = false, by id: String = Planner.newID()) throws -> Report {
        var report = Report()
        let current = try Generation.currentName(layout)
        let left = try replacementTimes()
        var candidates: [(name: String, since: Int)] = []
        for name in try Generation.names(layout) where name != current {
            guard let facts = try Files.facts(layout.generation(name)) else { continue }
            candidates.append((name, facts.modified.seconds))
        }
        // A rollback needs the generation that was current before the present one; after that, the newest are kept.
        let before = try current.flatMap { current in
            try HistoryReader(layout).first { $0.to == current && $0.from != current && $0.outcome != .failed }?.from
        }
        candidates.sort { ($0.name == before ? Int.max : $0.since) > ($1.name == before ? Int.max : $1.since) }
        let broken = try candidates.filter { try isBroken($0.name) }
        let sound = candidates.filter { one in !broken.contains { $0.name == one.name } }
        for (name, since) in sound.dropFirst(max(1, keep ?? settings.keep) - 1) + broken {
            // Readers without a lease may be about to open the generation that was in service a moment ago.
            let age = Timestamp.now.seconds - max(since, left[name] ?? 0)
            if age < settings.minimumAge, !broken.contains(where: { $0.name == name }) {
                report.kept.append(Kept(generation: name, why: "in service less than \(settings.minimumAge) s ago"))
            } else if try LeaseFile.isHeld(name, layout) {
                let holders = try LeaseFile.holders(of: name, layout).map(\.description).joined(separator: ", ")
                let why = "in use by \(holders.isEmpty ? "another process" : holders)"
                report.kept.append(Kept(generation: name, why: why))
            } else {
                report.freed += try StoreSnapshot(layout).size(of: name)
                if !dry { try remove(name, by: id) }
                report.removed.append(name)
            }
        }
        if !dry { try ChangeRecord.removeOld(layout) }
        return report
    }

    /// Whether the manifest is damaged, so that a rollback cannot return to the generation.
    private func isBroken(_ name: String) throws -> Bool {
        do { _ = try Generation.load(name, in: layout) } catch  where !Files.isDenied(error) { return true }
        return false
    }

    private func replacementTimes() throws -> [String: Int] {
        var times: [String: Int] = [:]
        let history = try HistoryReader(layout)
        let earliest = Timestamp.now.seconds - settings.minimumAge
        while let entry = try history.next(), entry.time.seconds >= earliest {
            guard let from = entry.from, from != entry.to, [.done, .finished].contains(entry.outcome) else { continue }
            times[from] = max(times[from] ?? 0, entry.time.seconds)
        }
        return times
    }

    /// Moves a generation to a trash directory in one step, then deletes it: a crash in between leaves garbage among the
    /// transactions, and not half a generation.
    private func remove(_ name: String, by id: String) throws {
        // An update whose removal a power failure undoes is finished again, and reads the generation that it replaced.
        try Files.syncDirectory(layout.transactions)
        try Removable(generation: name, in: layout).remove(by: .trash(name, layout), keepingChangesBy: id)
        try LeaseFile.remove(name, layout)
        try LinkedFiles(layout).refresh()
    }
}
