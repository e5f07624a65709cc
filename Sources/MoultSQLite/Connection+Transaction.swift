import CSQLite
import MoultBasics

extension Connection {
    package enum TransactionKind: String, Sendable {
        /// A read lock at the first read, the write lock at the first write.
        case deferred = "DEFERRED"
        /// The write lock immediately.
        case immediate = "IMMEDIATE"
        /// The write lock immediately; outside WAL mode, other connections cannot read either.
        case exclusive = "EXCLUSIVE"
    }

    package var isInTransaction: Bool { get throws { sqlite3_get_autocommit(try handle) == 0 } }

    /// Ends a transaction whose commit failed with an error. Throws if the commit could still take effect: if only the sync of a
    /// `-wal` failed, the `-wal` contains the complete transaction, and the next process that recovers it would commit it.
    package func endFailedCommit(_ error: any Error) throws {
        if try isInTransaction { try execute("ROLLBACK") }
        guard try header().isWAL else { return }
        // After these errors, the last frame is missing or incomplete, and only that frame commits the transaction.
        if let code = error.sqlite?.resultCode, code == .full || code == .ioErrorWrite { return }
        if try checkpoint() { return }
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

    /// Reads in the same way with the conditions of rules: a misspelled column in double quotes is an error there, and not text.
    package func readingStrictly<R>(_ body: () throws -> R) throws -> R {
        try reading { try with(.doubleQuotedStringsInDML, false, body) }
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

    /// Writes the changed pages of the current transaction to the file or the `-wal`, so that a full disk is found before the
    /// commit.
    package func flushCache() throws {
        try check(sqlite3_db_cacheflush(try handle), doing: "write the pages of \(path)")
    }

    /// Copies the WAL into the database file, and truncates it. Returns false if a reader or writer prevents that.
    package func checkpoint() throws -> Bool {
        let code = sqlite3_wal_checkpoint_v2(try handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        if ResultCode.busy ~= ResultCode(code) { return false }
        try check(code, doing: "checkpoint \(path)")
        return true
    }
}
