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
        /// The size of the removed files in bytes.
        package var freed = 0
        package var kept: [Kept] = []

        package init() {}
    }

    /// Removes the oldest generations beyond `keep`, and those with a damaged manifest. Requires the store's lock. With `dry`,
    /// only reports them. Files in them that a program has changed are kept in quarantine, in sets of the update `id`.
    package func collect(keep: Int? = nil, dry: Bool = false, by id: String = Planner.newID()) throws -> Report {
        var report = Report()
        let current = try Generation.currentName(layout)
        let keep = max(1, keep ?? settings.keep)
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
        // A generation with a damaged manifest cannot be rolled back to.
        let (sound, broken) = try split(candidates)
        for candidate in sound.dropFirst(keep - 1) + broken {
            // Readers without a lease may be about to open the generation that was in service a moment ago.
            let age = Timestamp.now.seconds - max(candidate.since, left[candidate.name] ?? 0)
            if age < settings.minimumAge, !broken.contains(where: { $0.name == candidate.name }) {
                report.kept.append(
                    Kept(generation: candidate.name, why: "in service less than \(settings.minimumAge) s ago"))
            } else if try LeaseFile.isHeld(candidate.name, layout) {
                let holders = try LeaseFile.holders(of: candidate.name, layout).map(\.description)
                report.kept.append(
                    Kept(
                        generation: candidate.name,
                        why: "in use by \(holders.isEmpty ? "another process" : holders.joined(separator: ", "))"))
            } else {
                report.freed += try StoreSnapshot(layout).size(of: candidate.name)
                if !dry { try remove(candidate.name, by: id) }
                report.removed.append(candidate.name)
            }
        }
        if !dry { try ChangeRecord.removeOld(layout) }
        return report
    }

    private typealias Candidates = [(name: String, since: Int)]

    private func split(_ candidates: Candidates) throws -> (sound: Candidates, broken: Candidates) {
        var (sound, broken): (Candidates, Candidates) = ([], [])
        for candidate in candidates {
            do {
                _ = try Generation.load(candidate.name, in: layout)
                sound.append(candidate)
            } catch {
                if Files.isDenied(error) { throw error }
                broken.append(candidate)
            }
        }
        return (sound, broken)
    }

    /// Returns the times at which generations were replaced in the last `minimumAge` seconds, by name.
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
