import CSQLite
import MoultBasics

/// When a transaction takes its lock.
package enum TransactionKind: String, Sendable {
    /// A read lock at the first read, the write lock at the first write.
    case deferred = "DEFERRED"
    /// The write lock immediately.
    case immediate = "IMMEDIATE"
    /// The write lock immediately; outside WAL mode, other connections cannot read either.
    case exclusive = "EXCLUSIVE"
}

extension Connection {
    package var isInTransaction: Bool { get throws { sqlite3_get_autocommit(try handle) == 0 } }

    /// Ends a transaction whose commit failed with an error. Throws if the commit could still take effect: if only the sync of a
    /// `-wal` failed, the `-wal` contains the complete transaction, and the next process that recovers it would commit it.
    package func endFailedCommit(_ error: any Error) throws {
        if try isInTransaction { try execute("ROLLBACK") }
        guard try header().isWAL else { return }
        // After these errors, the last frame is missing or incomplete, and only that frame commits the transaction.
        if let code = error.sqlite?.resultCode, code == .full || code == .ioErrorWrite { return }
        guard try checkpoint(.truncate).isBusy else { return }
        throw MoultError(
            .databaseBusy, .busy, what: "the -wal of \(path) cannot be emptied", why: "a process reads the database",
            now: "Try again when that process has ended its transaction.", cause: error)
    }

    /// Runs a body that only reads in the current transaction, or otherwise in one of its own, so that all statements see the same
    /// state.
    package func reading<R>(_ body: () throws -> R) throws -> R {
        if try isInTransaction { return try body() }
        try execute("BEGIN")
        let result = Result { try body() }
        // Nothing was changed, and SQLite does not commit after it has read a damaged page.
        if isOpen, try isInTransaction { try execute("ROLLBACK") }
        return try result.get()
    }

    /// Runs the body in a transaction. It is committed when the body returns, and rolled back when the body or the commit
    /// throws.
    package func transaction<R>(_ kind: TransactionKind, _ body: () throws -> R) throws -> R {
        try execute("BEGIN \(kind.rawValue)")
        do {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            // Some errors, such as a full disk, have already rolled the transaction back.
            guard isOpen, try isInTransaction else { throw error }
            do {
                try execute("ROLLBACK")
            } catch let second {
                throw MoultError(
                    .sqlite, what: "cannot roll back on \(path)", why: "\(second)", now: "Close the connection.",
                    cause: error)
            }
            throw error
        }
    }
}
