import MoultBasics
import MoultFiles

/// Moves the content of an unused database's sidecars into the main file, and removes them.
package enum WALCheckpoint {
    /// Rolls back a hot journal, checkpoints the WAL, switches to rollback mode, and verifies that no sidecar remains. Sidecars
    /// are never deleted directly: a `-wal` may contain committed rows, and a `-journal` may be the only way to roll back.
    package static func checkpointAndSeal(_ path: String) throws {
        do {
            try seal(Connection(path: path, access: .readWrite))
        } catch {
            // SQLite reports only that a lock exists, and not which process holds it.
            guard let code = error.sqlite?.resultCode, code.primary == .busy || code.primary == .locked else {
                throw error
            }
            throw try busy(path, "a process reads or writes it", cause: error)
        }
        let left = try Sidecars.of(path)
        guard left.isEmpty else {
            throw try busy(
                path, "a process has opened it in the meantime, and \(left.paths.joined(separator: ", ")) exists")
        }
    }

    private static func seal(_ connection: Connection) throws {
        // The first read rolls back a hot journal.
        _ = try connection.int("PRAGMA schema_version")
        guard try connection.checkpoint() else { throw try busy(connection.path, "a process reads or writes it") }
        // Only when leaving PERSIST does SQLite remove a journal left by an earlier connection.
        for mode in ["persist", "delete"] {
            guard try connection.scalar("PRAGMA journal_mode = \(mode)") == .text(mode) else {
                throw try busy(connection.path, "it stays in WAL mode, because a process has it open")
            }
        }
        try connection.close()
    }

    /// Returns the error for a database in use. Its reason lists the processes that have the database open, as far as this user
    /// may see them.
    private static func busy(_ path: String, _ why: String, cause: (any Error)? = nil) throws -> MoultError {
        let holders = try OpenFiles.holders(of: [path] + Sidecars.of(path).paths).map(\.description)
        return MoultError(
            .databaseBusy, .busy, what: "cannot checkpoint \(path)",
            why: holders.isEmpty ? why : "\(why): \(holders.joined(separator: ", "))",
            now: "Close the programs that have it open, then try again.", cause: cause)
    }
}
