internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Restores rows of one table from a set in quarantine. Rows that already exist, in the table or the reject table, are skipped.
final class RowRestore: TransactionEffect {
    private let table: String
    /// The rule with the columns that have been renamed since the set was kept; nil if none has.
    private let rule: Preservation.Rule?
    /// Databases of releases: rows that they contain do not belong to the app, and are not restored.
    private let shipped: [(file: String, isInstalled: Bool)]
    private var restored: [RowFate] = []

    override var fates: [RowFate] { restored }

    init(
        _ effect: Effect, at path: String, in transaction: Transaction, table: String, rule: Preservation.Rule?,
        shipped: [(file: String, isInstalled: Bool)]
    ) {
        (self.table, self.rule, self.shipped) = (table, rule, shipped)
        super.init(effect, at: path, in: transaction)
    }

    override func prepareLocked() throws {
        try begin(advice: "Try again when that program has ended its transaction.") { connection in
            try connection.execute("BEGIN IMMEDIATE")
            restored = [try transfer(to: connection)].filter { !$0.isEmpty }
            try mark(connection)
        }
    }

    private func transfer(to live: Connection) throws -> RowFate {
        let old = try Connection(path: Staging.restored(in: transaction.directory), access: .readWrite)
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
            rules: [own], rejects: RejectTable(name: ReleaseMarker.rejects, label: "restored", isRepeatable: true),
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
}
