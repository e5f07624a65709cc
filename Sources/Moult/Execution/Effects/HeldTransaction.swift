internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// A transaction on a database that apps write to, which stays open from the hold to the commit. Rolling it back leaves the
/// database as it was.
final class HeldTransaction {
    let connection: Connection
    /// Whether the database had a `-wal`, which a connection that only rolls back must leave in place.
    private let hadWAL: Bool
    private var isCommitted = false

    /// Opens the database and calls `begin`, which takes the write lock and makes the changes. `patience` is how many seconds to
    /// wait for another process to end its transaction, and `advice` what to do if it does not.
    init(_ place: String, patience: Int, advice: Advice, begin: (Connection) throws -> Void) throws {
        hadWAL = try Sidecars.of(place).wal != nil
        connection = try Connection(path: place, access: .readWrite, busyTimeout: Int32(clamping: patience * 1000))
        do { try begin(connection) } catch {
            try release()
            guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code || ResultCode.locked ~= code else {
                throw error
            }
            throw InUse.error(place, advice: advice, cause: error)
        }
    }

    func commit() throws {
        try connection.execute("COMMIT")
        isCommitted = true
        try connection.close()
    }

    func endFailedCommit(_ error: any Error) throws {
        if !isCommitted { try connection.endFailedCommit(error) }
    }

    /// Rolls the transaction back, unless it was committed.
    func release() throws {
        guard connection.isOpen else { return }
        if try connection.isInTransaction { try connection.execute("ROLLBACK") }
        // The last connection to close would checkpoint the app's own WAL: harmless, but a change that moult must not make
        // here.
        if hadWAL { try connection.set(.noCheckpointOnClose, true) }
        try connection.close()
    }
}
