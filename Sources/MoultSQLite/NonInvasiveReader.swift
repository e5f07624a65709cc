import MoultBasics
import MoultFiles
import MoultLibc

/// Reads a writable database in its current state without changing it, even if other processes have it open or a crash left
/// sidecars.
package enum NonInvasiveReader {
    /// Calls the closure with a connection that reads the database. The body may be called again if another process intervenes.
    /// If this process has the file open itself, a normal connection is used, because `LockFreeReader` would drop this process's
    /// locks. A leftover journal is rolled back in a copy, which is removed afterwards.
    package static func into<R>(
        _ path: String, deadline: Double? = nil, busyTimeout: Int32 = 5000, _ body: (Connection) throws -> R
    ) throws -> R {
        if try OpenFiles.isOpenHere(path) {
            let connection = try Connection(path: path, access: .readOnly, busyTimeout: busyTimeout)
            let result = try body(connection)
            try connection.close()
            return result
        }
        return try naming(path) { try attempt(path, deadline, busyTimeout, body) }
    }

    /// Adds to a lock error the processes that have the database open, as far as this user may see them.
    private static func naming<R>(_ path: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch var error as MoultError where error.sqlite != nil && error.outcome == .busy {
            guard let users = try OpenFiles.users(of: [path] + Sidecars.of(path).paths) else { throw error }
            error.what = "\(path) is in use"
            error.why = "it is locked, and \(users)"
            error.now = "Try again when the lock has been released, or stop the program that holds it."
            throw error
        }
    }

    private static func attempt<R>(
        _ path: String, _ deadline: Double?, _ busyTimeout: Int32, _ body: (Connection) throws -> R
    ) throws -> R {
        do {
            return try LockFreeReader.into(path, deadline: deadline, busyTimeout: busyTimeout) { connection, _ in
                try body(connection)
            }
        } catch let error as MoultError {
            guard try needsCopy(error, path) else { throw error }
            return try Files.withScratchDirectory { scratch in
                let copy = "\(scratch)/copy.db"
                try copySet(path, to: copy)
                return try read(copy, deadline, body)
            }
        }
    }

    /// Returns whether the error was caused by a hot journal, or by a WAL index that a crash left half written. The next writer
    /// repairs both; until then they are repaired only in a copy.
    private static func needsCopy(_ error: MoultError, _ path: String) throws -> Bool {
        if error.code == .hotJournal { return true }
        // The journal may have the page with the header, so only SQLite can tell whether the file is a database.
        if error.code == .databaseCorrupt { return try Sidecars.of(path).hasHotJournal() }
        guard let code = error.sqlite?.resultCode, code == .readOnlyRecovery || code.primary == .lockingProtocol
        else { return false }
        return try OpenFiles.holders(of: [path] + Sidecars.of(path).paths).isEmpty
    }

    /// Creates a separate file with all committed content of the database.
    package static func copy(_ path: String, to copy: String) throws {
        do {
            try into(path) { connection in
                let target = try Connection(path: copy, access: .readWriteCreate)
                try connection.backup(to: target)
                try target.close()
            }
        } catch {
            try Files.remove(copy)
            throw error
        }
    }

    /// Copies a database that no process uses, with the files that SQLite needs to restore its last commit.
    package static func copySet(_ path: String, to copy: String) throws {
        try Files.copy(path, to: copy, mode: 0o600)
        let sidecars = try Sidecars.of(path)
        for (sidecar, suffix) in [(sidecars.journal, "-journal"), (sidecars.wal, "-wal")] {
            guard let sidecar, sidecar.facts.kind == .file else { continue }
            try Files.copy(sidecar.path, to: copy + suffix, mode: 0o600)
        }
    }

    private static func read<R>(_ path: String, _ deadline: Double?, _ body: (Connection) throws -> R) throws -> R {
        let connection = try Connection(path: path, access: .readWrite)
        _ = try connection.int("PRAGMA schema_version")
        if let deadline { try connection.raiseGuard(deadline: deadline) }
        let result = try body(connection)
        try connection.close()
        return result
    }
}
