internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

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
            now: "Nothing was changed. " + Settings.QuarantineBudget.advice)
    }

    /// Removes sets that are older than a number of days, but sets with user data only with `includingUserData`, and a file from
    /// before moult only if its set is named. `name` limits this to a set or a database. With `dry`, only reports them.
    package func clean(olderThan days: Int, of name: String? = nil, includingUserData: Bool, dry: Bool) throws -> Report
    {
        var report = Report()
        let limit = Timestamp.now.seconds - days * 86_400
        for set in try sets() where set.since.seconds <= limit {
            if let name, name != set.id, name != set.record?.database { continue }
            let isForeign = set.record?.reason == .foreign
            guard let removable = Removable(set, isNamed: includingUserData && (!isForeign || name == set.id)) else {
                let foreign = "the file existed before moult; only its own name removes it"
                report.kept.append((set, isForeign ? foreign : "it contains user data"))
                continue
            }
            if !dry { try removable.removeSet() }
            report.removed.append(set)
        }
        return report
    }
}

/// Collects the rows that updates left behind, so that quarantine does not get another set with each update for ever.
extension QuarantineShelf {
    /// How many of the newest sets of a database stay separate.
    private static let separate = 16
    /// The size of a set that gets no more rows, because each addition copies the set.
    private static let largest = 1 << 20

    /// Adds the rows of older sets of a database to the set before them, in which each row names its release and reason. Requires
    /// the store's lock.
    func collectRows() throws {
        let sets = try sets().filter { $0.record.map { $0.isRows } ?? false }
        for sets in Dictionary(grouping: sets, by: \.subject).values {
            var target: Set?
            for set in sets.dropLast(Self.separate) { target = try target.flatMap { try add(set, to: $0) } ?? set }
        }
    }

    /// Returns the set with the rows of both; nil if they cannot be combined.
    private func add(_ set: Set, to target: Set) throws -> Set? {
        guard set.size + target.size <= Self.largest, let added = set.record, var record = target.record,
            let source = set.file, let file = target.file
        else { return nil }
        let staged = "\(target.directory)/\(QuarantineRecord.stagedRows)"
        try Files.remove(staged)
        try Files.copy(file, to: staged, mode: 0o600)
        guard let rows = try merge(source, set, into: staged, target) else {
            try Files.remove(staged)
            return nil
        }
        try Files.seal(staged, mode: 0o600)
        try Files.rename(staged, to: file)
        (record.rows, record.release, record.why) = (rows, added.release, added.why)
        (record.time, record.owner) = (added.time, added.owner)
        // Also syncs the directory.
        try record.write(to: target.directory)
        try Removable(set, isNamed: true)?.removeSet()
        return try Self.set(target.directory)
    }

    private func merge(_ source: String, _ set: Set, into staged: String, _ target: Set) throws -> [SQLName: Int]? {
        do {
            return try KeptRows.merge(source, of: set.origin, into: staged, of: target.origin)
        } catch let error as MoultError where error.code == .databaseCorrupt {
            // Any process may have changed a set. It stays as it is.
            return nil
        }
    }
}

extension QuarantineShelf.Set {
    /// Identifies the sets whose rows may be in one set.
    fileprivate var subject: [[UInt8]] {
        guard let record else { return [] }
        return [record.database, record.path, record.kind.rawValue, record.reason.rawValue].map { Array($0.utf8) }
    }

    fileprivate var origin: KeptRows.Origin {
        KeptRows.Origin(
            set: id, release: record?.release ?? "", reason: record?.reason.rawValue ?? "", time: since.description)
    }
}
