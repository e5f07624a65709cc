import CSQLite
package import MoultBasics
import MoultFiles
import MoultLibc

/// Reads a database that other processes may have open, and changes nothing: no byte, no sidecar, no mtime or ctime. Only for
/// processes that do not have the database open otherwise: two of the methods close a descriptor of the file without SQLite
/// noticing, which releases every POSIX lock of the process on that file.
package enum LockFreeReader {
    /// The method of reading the database, which depends on its sidecars.
    package enum Way: Sendable {
        /// In rollback mode, with normal locks: this process and a writer wait for each other.
        case locks
        /// In WAL mode with a `-wal` and a `-shm`, which a process uses or a crash has left: through the `-shm`, read-only.
        case sharedMemory
        /// In WAL mode with a `-wal` but without a `-shm`: with an index of the WAL in this process's own memory.
        case privateIndex
        /// In WAL mode without a `-wal`: from the file alone, which is complete.
        case closed
    }

    /// Calls the closure with a connection that reads the database. With a deadline (in seconds), the connection is guarded.
    ///
    /// The body is called again if another process opens the database or writes to it in a way that locks do not prevent: that is
    /// not a fault of the database, and the next attempt may succeed. After `busyTimeout` (in milliseconds), the error says to try
    /// again (E402). A hot journal has its own error (E410), because the database cannot be read until a process rolls the journal
    /// back. A writer that begins its transaction at that moment looks the same to SQLite, so the first such errors do not count.
    package static func into<R>(
        _ path: String, deadline: Double? = nil, busyTimeout: Int32 = 5000, _ body: (Connection, Way) throws -> R
    ) throws -> R {
        var backoff = Backoff(.milliseconds(Int(busyTimeout)), longest: 1)
        var hotJournals = 0
        while true {
            do { return try attempt(path, deadline, busyTimeout, body) } catch let error as MoultError {
                if error.code == .hotJournal { hotJournals += 1 }
                let isBrief =
                    error.code == .hotJournal
                    ? hotJournals < maxHotJournals : error.code == .databaseBusy && error.sqlite == nil
                guard isBrief, backoff.pause() else { throw error }
            }
        }
    }

    private static let maxHotJournals = 20

    private static func attempt<R>(
        _ path: String, _ deadline: Double?, _ busyTimeout: Int32, _ body: (Connection, Way) throws -> R
    ) throws -> R {
        try preventCtimeChanges()
        // Opening reads nothing yet; only the first statement looks for sidecars and creates them.
        let probe = try Connection(path: path, access: .readOnlySharedMemory, busyTimeout: busyTimeout)
        let header = try probe.header()
        let before = try Sidecars.of(path)
        let way: Way =
            switch (before.wal, before.sharedMemory) {
            case (_?, _?): .sharedMemory
            case (_?, nil): .privateIndex
            case (nil, _): header.isWAL ? .closed : .locks
            }
        let connection: Connection
        var isLocked = false
        switch way {
        case .locks, .sharedMemory: connection = probe
        case .privateIndex, .closed:
            // Keeps out processes that write the file itself; writers of a WAL are detected afterwards.
            try probe.lockShared(within: busyTimeout)
            isLocked = true
            if way == .closed, try before.hasHotJournal() { throw hotJournal(path) }
            connection =
                try way == .closed
                ? Connection(path: path, access: .immutable)
                : connectionWithPrivateIndex(path)
        }
        let facts = isLocked ? try Files.factsThroughLinks(path) : nil
        let result = Result {
            do {
                if let deadline { try connection.raiseGuard(deadline: deadline) }
                _ = try connection.int("PRAGMA schema_version")
                return try body(connection, way)
            } catch {
                if error.sqlite?.path == path, error.sqlite?.resultCode == .readOnlyRollback {
                    throw hotJournal(path, cause: error)
                }
                guard let cause = error.sqlite, cause.path == path,
                    try isCausedByWriter(cause.resultCode, way, path, before)
                else { throw error }
                throw changed(path)
            }
        }
        try connection.close()
        if isLocked {
            guard try facts == Files.factsThroughLinks(path), try before == Sidecars.of(path) else {
                throw changed(path)
            }
            try probe.unlock()
        }
        try probe.close()
        return try result.get()
    }

    /// Prevents SQLite from changing ctimes. If root runs SQLite, it sets the owner of a `-wal` or `-journal` that it opens to
    /// the database's owner, which updates ctime even if the owner stays the same. From here on, this process's SQLite skips
    /// the call where it would change nothing.
    private static func preventCtimeChanges() throws {
        guard geteuid() == 0 else { return }
        let code = moult_sqlite_keep_ctime()
        guard code == SQLITE_OK else {
            throw MoultError(
                .sqlite, what: "cannot read a database without changing its files",
                why: "this SQLite has no replaceable system calls (\(ResultCode(code)))")
        }
    }

    /// Opens a database whose WAL has no `-shm`. In exclusive mode, SQLite keeps the WAL's index on the heap, and without locks
    /// that mode needs no write access.
    private static func connectionWithPrivateIndex(_ path: String) throws -> Connection {
        // SQLite's own VFS refuses a path with symlinks, because of SQLITE_OPEN_NOFOLLOW, also that of a descriptor. Nothing is
        // written to the file.
        let found = try Files.resolvedForOpening(path)
        let file = try Connection.OpenableFile(found, .readOnly)
        let unpinned = try PinnedDirectory.split(found) == nil ? found : Files.resolved(found)
        let connection = try Connection(
            uri: Access.readOnly.uri(for: unpinned, extra: "&vfs=unix-none"), path: path, file: file, busyTimeout: 0)
        try connection.limitValues(to: ValueLimit.of(file))
        try connection.set(.noCheckpointOnClose, true)
        try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        return connection
    }

    /// Returns whether another process caused the error of a statement that read through the `-shm`. SQLite waits for a writer
    /// that is updating the `-shm` only if the reader could write to it; so each statement may fail.
    private static func isCausedByWriter(
        _ code: ResultCode, _ way: Way, _ path: String, _ before: Sidecars
    ) throws -> Bool {
        switch code {
        case .readOnlyRecovery, .readOnlyCannotInitialize: way == .sharedMemory
        // A process has created or removed the sidecars in the meantime, or has changed the journal mode.
        case .cannotOpen: try way != .closed && Files.factsThroughLinks(path)?.kind == .file
        case .readOnlyDirectory: try way == .sharedMemory && before != Sidecars.of(path)
        default: false
        }
    }

    package static func hotJournal(_ path: String, cause: (any Error)? = nil) -> MoultError {
        MoultError(
            .hotJournal, what: "\(path) has a hot journal",
            why: "its last writer did not finish, and that transaction has not been rolled back yet",
            now:
                "Open the database once with its app, which rolls the transaction back, or run: \(run: ["sqlite3", path, "PRAGMA user_version"])",
            cause: cause)
    }

    /// The error about a database that was changed in a way that locks do not prevent.
    package static func changed(_ path: String) -> MoultError {
        MoultError(
            .databaseBusy, .busy, what: "\(path) was changed while it was read",
            why: "a process opened the database or wrote to it",
            now: "Try again.")
    }
}

extension Connection {
    /// Takes SQLite's SHARED lock manually, without the check for sidecars that a statement would make.
    fileprivate func lockShared(within milliseconds: Int32) throws {
        let file = try file
        // SQLite's busy timeout applies only to statements. The last process to close a WAL database briefly locks out all
        // others.
        var backoff = Backoff(.milliseconds(Int(milliseconds)), longest: 1)
        while true {
            let code = file.pointee.pMethods?.pointee.xLock?(file, SQLITE_LOCK_SHARED) ?? SQLITE_MISUSE
            if code == SQLITE_BUSY, backoff.pause() { continue }
            return try check(code, doing: "lock \(path) for reading")
        }
    }

    fileprivate func unlock() throws {
        let file = try file
        let code = file.pointee.pMethods?.pointee.xUnlock?(file, SQLITE_LOCK_NONE) ?? SQLITE_MISUSE
        try check(code, doing: "unlock \(path)")
    }
}
