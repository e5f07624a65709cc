import MoultBasics
internal import MoultFiles
internal import MoultSQLite
package import StepKit

/// The changes that a new release makes on machines with the previous release.
package struct PackChanges: Sendable {
    package let before: Version
    package let diff: ReleaseDiff
    package let migrations: [(database: String, member: String)]
    /// Tables of shared databases whose rows the release does not carry over.
    package let unpreserved: [(database: String, table: String)]
    package let bundleSizeBefore: Int?
    /// The size of the patches that a machine with the previous release downloads; nil if the release has no patches that are
    /// worthwhile compared with the bundle.
    package let patchSize: Int?
    package let milliseconds: Int

    /// Nil if `previous` has no manifest. The new release is moved to `place` when it is complete.
    init?(
        from previous: String, to release: String, at place: String, _ manifest: Manifest,
        by compare: (_ old: Subject, _ new: Subject) throws -> ReleaseDiff
    ) throws {
        let begun = ContinuousClock.now
        let old = try Subject.open(previous)
        guard let older = old.manifest else { return nil }
        before = older.version
        let new = try Subject.open(release)
        var diff = try compare(old, new)
        diff.new.path = place
        self.diff = diff
        migrations = manifest.databases.filter { $0.kind.isMigrated }.flatMap { database in
            let known = older.database(database.name)?.migrations.map(\.member) ?? []
            return database.migrations.filter { !known.contains($0.member) }.map { (database.name, $0.member) }
        }
        unpreserved = try manifest.databases.filter { $0.kind.isReplaced }.flatMap { database in
            let preserved = Set(database.preserve.map { SQLName($0.table) })
            let inspected = try new.part(database.name).flatMap {
                try DatabaseInspection($0, isWritableCopy: false, counting: { _ in })
            }
            return (inspected?.tables ?? []).filter {
                !preserved.contains(SQLName($0.name)) && !ReleaseMarker.isOwn($0.name)
            }.map { (database.name, $0.name) }
        }
        bundleSizeBefore = older.bundle?.size
        patchSize = manifest.worthwhilePatches(from: older)?.reduce(0) { $0 + $1.size }
        milliseconds = Int((ContinuousClock.now - begun) / .milliseconds(1))
    }
}
