internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// An effect on a database that apps write to, from the hold to the commit.
///
/// An update takes all of these effects through the same stages: hold every database before any is changed, decide, perform,
/// commit. If a database cannot be held, the update ends before anything has changed.
class WritableEffect {
    let effect: Effect
    let path: String
    let transaction: Transaction
    /// The gate for the old content, if this effect replaces any.
    let displacement: Displacement?
    /// The marker that the database has while it is held; nil if it is not held. Recorded with the decision.
    final var marker: OldMarker?
    /// What the effect changes in a database of apps; nil if it is unknown.
    final var changedRows: DatabaseChanges?

    /// The full path of the database, for messages and for syncing its directory.
    final var place: String { transaction.layout.file(path) }
    final var copy: String { Staging.held(path, in: transaction.directory) }
    var fates: [RowFate] { displacement?.fates ?? [] }
    var warnings: [Advice] { [] }
    /// Whether the effect may wait a long time for other processes' transactions. Such an effect is held first, before the
    /// databases of other effects are locked.
    var waitsForOthers: Bool { false }

    init(_ effect: Effect, at path: String, in transaction: Transaction, _ displacement: Displacement? = nil) {
        (self.effect, self.path, self.transaction, self.displacement) = (effect, path, transaction, displacement)
    }

    /// Does with a private copy of the database what an update does up to the decision, for a plan.
    func rehearse() throws {}
    /// Reads the database, and prepares everything that needs no lock. Whatever can be refused is refused here.
    func prepareUnlocked() throws {}
    /// Takes only the lock, briefly, so that several databases can be tried together. May be called again after `unlock`.
    func acquire() throws {}
    func unlock() throws {}
    /// Takes over what apps have written since, and keeps what would be lost; migrations and restores take their lock here. Called once.
    func prepareLocked() throws {}
    /// Writes as much as possible before the decision, so that a full disk prevents it.
    func copyPages() throws {}
    /// Makes the changes that can be undone exactly.
    func perform() throws {}
    func revert() throws {}
    /// Makes the change final, usually by SQLite's own commit. Returns whether anything was committed: then the update cannot
    /// be undone.
    func commit() throws -> Bool { false }
    /// Ends a commit that threw an error, so that the database can be read.
    func endFailedCommit(_ error: any Error) throws {}
    func finish() throws {}
    func release() throws {}
}

/// An effect that is one transaction of SQLite, begun before the decision and committed after everything else. Rolling it back
/// leaves the database as it was.
class TransactionEffect: WritableEffect {
    private var connection: Connection?
    /// Whether the database had a `-wal`, which a connection that only rolls back must leave in place.
    private var hadWAL = false
    private var isCommitted = false

    override final var waitsForOthers: Bool { true }

    /// Opens the database and calls `change`, which takes the write lock and makes the changes. `advice` says what to do if another
    /// process does not end its transaction in time.
    @discardableResult
    final func begin(advice: Advice, change: (Connection) throws -> Void) throws -> Connection {
        hadWAL = try Sidecars.of(place).wal != nil
        let timeout = Int32(clamping: transaction.patience * 1000)
        let connection = try Connection(path: place, access: .readWrite, busyTimeout: timeout)
        self.connection = connection
        do { try change(connection) } catch {
            try release()
            guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code || ResultCode.locked ~= code else {
                throw error
            }
            throw InUse.error(place, advice: advice, cause: error)
        }
        return connection
    }

    /// Gives the database the marker of this update.
    final func mark(_ connection: Connection) throws {
        marker = OldMarker(transaction: try TransactionMarker.read(connection))
        try TransactionMarker.write(transaction.id, to: connection)
    }

    override final func commit() throws -> Bool {
        guard let connection else { return false }
        try connection.execute("COMMIT")
        isCommitted = true
        try connection.close()
        return true
    }

    override final func endFailedCommit(_ error: any Error) throws {
        if !isCommitted { try connection?.endFailedCommit(error) }
    }

    override final func revert() throws { try release() }

    /// Rolls the transaction back, unless it was committed.
    override final func release() throws {
        guard let connection, connection.isOpen else { return }
        if try connection.isInTransaction { try connection.execute("ROLLBACK") }
        // The last connection to close would checkpoint the app's own WAL: harmless, but a change that moult must not make
        // here.
        if hadWAL { try connection.set(.noCheckpointOnClose, true) }
        try connection.close()
        self.connection = nil
    }
}

extension WritableEffect {
    /// The marker of a database at the decision.
    struct OldMarker {
        /// The transaction that the marker names; nil if the database has no marker.
        let transaction: String?
    }
}
