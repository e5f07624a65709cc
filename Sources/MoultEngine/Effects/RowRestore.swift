internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Restores rows of one table from a set in quarantine, in one transaction, begun before the decision and committed after
/// everything else.
///
/// Repeating the restore changes nothing, because rows that already exist, in the table or the reject table, are skipped.
final class RowRestore: WritableEffect {
    let effect: Effect
    let place: String
    var waitsForOthers: Bool { true }
    private(set) var fates: [RowFate] = []
    private let table: String
    /// The rule with the columns that have been renamed since the set was kept; nil if none has.
    private let rule: Preservation.Rule?
    /// The database in the set.
    private let source: String
    /// Databases of releases: rows that they contain do not belong to the app, and are not restored.
    private let shipped: [(file: String, isInstalled: Bool)]
    private var connection: Connection?
    /// Whether the database had a `-wal`, which a connection that only rolls back must leave in place.
    private var hadWAL = false

    /// How many seconds to wait for another process to end its transaction.
    private let patience: Int

    init(
        _ effect: Effect, place: String, table: String, rule: Preservation.Rule?, source: String,
        shipped: [(file: String, isInstalled: Bool)],
        patience: Int
    ) {
        (self.effect, self.place, self.table, self.source, self.shipped) = (effect, place, table, source, shipped)
        (self.rule, self.patience) = (rule, patience)
    }

    func hold() throws {
        hadWAL = try Sidecars.of(place).wal != nil
        let connection = try Connection(path: place, access: .readWrite, busyTimeout: Int32(clamping: patience * 1000))
        self.connection = connection
        do {
            try connection.execute("BEGIN IMMEDIATE")
            let fate = try transfer(to: connection)
            fates = fate.isEmpty ? [] : [fate]
        } catch {
            try release()
            guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code || ResultCode.locked ~= code else {
                throw error
            }
            throw InUse.error(place, advice: "Try again when that program has ended its transaction.", cause: error)
        }
    }

    private func transfer(to live: Connection) throws -> RowFate {
        let old = try Connection(path: source, access: .readWrite)
        let pristine = try shipped.filter { try Files.facts($0.file)?.kind == .file }.map {
            (connection: try Connection(path: $0.file, access: .immutable), isInstalled: $0.isInstalled)
        }
        let before = try rows(of: live)
        // The present table may lack a column of the set, even under another name.
        let known = try ContentTransfer.columns(of: table, in: live)
        let columns = rule?.placement?.columns.filter { known.contains(SQLName($0.value)) } ?? [:]
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
        guard let connection else { return false }
        try connection.execute("COMMIT")
        // The restore is committed, even if closing fails.
        self.connection = nil
        try connection.close()
        return true
    }

    /// Returns whether nothing is left to restore.
    func isCommitted() throws -> Bool {
        if connection != nil { return false }
        try hold()
        let isCommitted = fates.allSatisfy { $0.carried == 0 && $0.rejected == 0 }
        try release()
        return isCommitted
    }

    func revert() throws { try release() }

    /// Rolls back the transaction, unless it was committed.
    func release() throws {
        if let connection, try connection.isInTransaction { try connection.execute("ROLLBACK") }
        // The last connection to close would checkpoint the app's own WAL: harmless, but a change that moult must not make
        // here.
        if hadWAL { try connection?.set(.noCheckpointOnClose, true) }
        try connection?.close()
        connection = nil
    }
}
