internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

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
