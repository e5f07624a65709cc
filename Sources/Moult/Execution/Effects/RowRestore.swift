internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Restores rows of one table from a set in quarantine, in one transaction, begun before the decision and committed after
/// everything else.
///
/// Rows that already exist, in the table or the reject table, are skipped.
final class RowRestore: WritableEffect {
    let effect: Effect
    let place: String
    var waitsForOthers: Bool { true }
    private(set) var fates: [RowFate] = []
    private(set) var marker: OldMarker?
    /// The path in the plan.
    private let path: String
    /// The ID of the transaction.
    private let id: String
    private let table: String
    /// The rule with the columns that have been renamed since the set was kept; nil if none has.
    private let rule: Preservation.Rule?
    /// The database in the set.
    private let source: String
    /// Databases of releases: rows that they contain do not belong to the app, and are not restored.
    private let shipped: [(file: String, isInstalled: Bool)]
    private var transaction: HeldTransaction?

    /// How many seconds to wait for another process to end its transaction.
    private let patience: Int

    init(
        _ effect: Effect, place: String, path: String, id: String, table: String, rule: Preservation.Rule?,
        source: String,
        shipped: [(file: String, isInstalled: Bool)],
        patience: Int
    ) {
        (self.effect, self.place, self.table, self.source, self.shipped) = (effect, place, table, source, shipped)
        (self.path, self.id, self.rule, self.patience) = (path, id, rule, patience)
    }

    func prepareLocked() throws {
        let advice: Advice = "Try again when that program has ended its transaction."
        transaction = try HeldTransaction(place, patience: patience, advice: advice) { connection in
            try connection.execute("BEGIN IMMEDIATE")
            let fate = try transfer(to: connection)
            fates = fate.isEmpty ? [] : [fate]
            marker = OldMarker(path: path, transaction: try TransactionMarker.read(connection))
            try TransactionMarker.write(id, to: connection)
        }
    }

    private func transfer(to live: Connection) throws -> RowFate {
        let old = try Connection(path: source, access: .readWrite)
        let pristine = try shipped.filter { try Files.facts($0.file)?.kind == .file }.map {
            (connection: try Connection(path: $0.file, access: .immutable), isInstalled: $0.isInstalled)
        }
        let before = try rows(of: live)
        // The present table may lack a column of the set, even under another name.
        let known = try RowSelection.columns(of: table, in: live)
        let columns = rule?.columns { known.contains(SQLName($0)) } ?? [:]
        let own = RowRule(
            table: table, columns: columns, earlierRenames: rule?.earlierRenames ?? [:], onConflict: .keepNew,
            onReject: .record)
        let transfer = RowTransfer(
            rules: [own],
            rejects: RejectTable(name: ReleaseMarker.rejects, label: "restored", isRepeatable: true),
            shipped: pristine.map(\.connection), ownShipped: pristine.first(where: \.isInstalled)?.connection,
            isLive: true)
        let outcomes = try transfer.run(from: old, to: live)
        for (connection, _) in pristine { try connection.close() }
        try old.close()
        // Rows that the database already had were skipped, so only the difference counts.
        let added = try rows(of: live) - before
        return outcomes.reduce(into: RowFate(table: table, carried: added)) {
            $0.rejected += $1.rejected - $1.recorded
            $0.kept += $1.unplaced + $1.incomplete
            $0.incomplete += $1.incomplete
        }
    }

    private func rows(of live: Connection) throws -> Int {
        guard try RowSelection.hasTable(table, in: live) else { return 0 }
        return try RowSelection(table: table, conditions: [nil]).count(in: live)
    }

    func commit() throws -> Bool {
        guard let transaction else { return false }
        try transaction.commit()
        return true
    }

    func endFailedCommit(_ error: any Error) throws { try transaction?.endFailedCommit(error) }

    func revert() throws { try release() }
    func release() throws {
        try transaction?.release()
        transaction = nil
    }
}
