internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Finds the tables that an update changes in a database; the messages to consumers list them.
struct ChangedTables {
    let transaction: Transaction
    let plan: Plan
    let installed: Manifest?
    let release: Manifest

    /// The limit on the total size of both files. With larger files, the comparison would take longer than a consumer needs to
    /// read everything again.
    private static let sizeLimit = 64 << 20

    /// Returns the tables that differ in the named database; nil if they are unknown, in which case any table may differ.
    func of(_ name: String) -> [String]? {
        guard let before = installed?.database(name), let after = release.database(name) else { return nil }
        // An error does not fail the update: all tables then count as changed.
        return try? compare(before, after)
    }

    private func compare(_ before: Database, _ after: Database) throws -> [String]? {
        guard let new = try newFile(after), let from = plan.from else { return nil }
        let layout = transaction.layout
        let old =
            before.kind.isSealed
            ? "\(layout.generation(from.generation))/\(before.member)" : layout.file(plan.path(of: before))
        let sizes = try [old, new].map { try Files.factsThroughLinks($0)?.size ?? 0 }
        guard sizes.reduce(0, +) <= Self.sizeLimit else { return nil }
        // A read-only connection would leave sidecars next to a writable file.
        let one = try Connection(path: old, access: before.kind.isSealed ? .immutable : .readWrite)
        let other = try Connection.openGuarded(path: new, access: .immutable, deadline: 10)
        let changed = try ChangedRows.between(one, other, limit: 0).map(\.table)
        try one.close()
        try other.close()
        return changed
    }

    /// Returns the path of the new file; nil if none is staged, as for a migration. Called during preparation.
    private func newFile(_ database: Database) throws -> String? {
        guard database.kind.isSealed else {
            let path = transaction.waiting(plan.path(of: database))
            return try Files.facts(path) == nil ? nil : path
        }
        let directories = [transaction.generation, transaction.layout.generation(plan.to.generation)]
        return try directories.map { "\($0)/\(database.member)" }.first { try Files.factsThroughLinks($0) != nil }
    }
}
