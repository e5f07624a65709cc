internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Puts rows of one table back from a set in quarantine: in one transaction, begun before the decision and committed when
/// everything else is done.
///
/// Doing it again changes nothing, because rows that already exist, or in the reject table, are left out.
final class RowRestore: WritableEffect {
    let effect: Effect
    let place: String
    var waitsForOthers: Bool { true }
    private(set) var fates: [RowFate] = []
    private let table: String
    /// The database of the set.
    private let source: String
    /// The files of the releases whose rows are not the app's.
    private let shipped: [String]
    private var connection: Connection?
    /// Whether a `-wal` lay next to the database, which a connection that only rolls back must leave.
    private var hadWAL = false

    /// How many seconds to wait for another process to end its transaction.
    private let patience: Int

    init(_ effect: Effect, place: String, table: String, source: String, shipped: [String], patience: Int) {
        (self.effect, self.place, self.table, self.source, self.shipped) = (effect, place, table, source, shipped)
        self.patience = patience
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
            throw InUse.error(place, advice: "Try again when its transaction has ended.", cause: error)
        }
    }

    private func transfer(to live: Connection) throws -> RowFate {
        let old = try Connection(path: source, access: .readWrite)
        let pristine = try shipped.filter { try Files.facts($0)?.kind == .file }.map {
            try Connection(path: $0, access: .immutable)
        }
        let before = try rows(of: live)
        let transfer = RowTransfer(
            rules: [RowRule(table: table, onConflict: .keepNew, onReject: .record)],
            rejects: RejectTable(name: ReleaseMarker.rejects, label: "restored", isRepeatable: true), shipped: pristine)
        let outcomes = try transfer.run(from: old, to: live)
        for connection in pristine { try connection.close() }
        try old.close()
        // Rows that the database has already are not put back.
        let added = try rows(of: live) - before
        return outcomes.reduce(into: RowFate(table: table, carried: added)) {
            $0.rejected += $1.rejected - $1.recorded
            $0.kept += $1.unplaced
        }
    }

    private func rows(of live: Connection) throws -> Int {
        guard try RowSelection.hasTable(table, in: live) else { return 0 }
        return try RowSelection(table: table, conditions: [nil]).count(in: live)
    }

    func commit() throws -> Bool {
        guard let connection else { return false }
        try connection.execute("COMMIT")
        // It is done, whatever closing says.
        self.connection = nil
        try connection.close()
        return true
    }

    /// Whether nothing is left to put back.
    func isCommitted() throws -> Bool {
        if connection != nil { return false }
        try hold()
        let isCommitted = fates.isEmpty
        try release()
        return isCommitted
    }

    func revert() throws { try release() }

    /// Takes all of it back, if it was not committed.
    func release() throws {
        if let connection, try connection.isInTransaction { try connection.execute("ROLLBACK") }
        // The last connection would bring the app's own WAL into the file: right, but not ours to do here.
        if hadWAL { try connection?.set(.noCheckpointOnClose, true) }
        try connection?.close()
        connection = nil
    }
}
