import MoultBasics
import MoultFiles

/// Moves the content of the sidecars of an unused database into the main file, and removes them.
package enum WALCheckpoint {
    /// Rolls back or checkpoints what is left, switches to rollback mode, and proves that no sidecar remains.
    ///
    /// Sidecars are never deleted by hand: a `-wal` may hold committed rows, a `-journal` the only way back.
    package static func checkpointAndSeal(_ path: String, busyTimeout: Int32 = 5000) throws {
        do {
            try seal(Connection(path: path, access: .readWrite, busyTimeout: busyTimeout))
        } catch {
            // What SQLite says of a lock is only half of it: the other half is whose it is.
            guard let code = error.sqlite?.resultCode, code.primary == .busy || code.primary == .locked else {
                throw error
            }
            throw try busy(path, "a process reads or writes it", cause: error)
        }
        let left = try Sidecars.of(path)
        guard left.isEmpty else {
            throw try busy(path, "a process opened it meanwhile, and \(left.paths.joined(separator: ", ")) is there")
        }
    }

    private static func seal(_ connection: Connection) throws {
        // A hot journal is rolled back by the first read.
        _ = try connection.int("PRAGMA schema_version")
        guard try !connection.checkpoint(.truncate).isBusy else {
            throw try busy(connection.path, "a process reads or writes it")
        }
        // Only from PERSIST does SQLite remove a journal that an earlier connection left behind.
        for mode in ["persist", "delete"] {
            guard try connection.scalar("PRAGMA journal_mode = \(mode)") == .text(mode) else {
                throw try busy(connection.path, "it stays in WAL mode, because a process has it open")
            }
        }
        try connection.close()
    }

    /// Says who, as far as this user may see.
    private static func busy(_ path: String, _ why: String, cause: (any Error)? = nil) throws -> MoultError {
        let holders = try OpenFiles.holders(of: [path] + Sidecars.of(path).paths).map(\.description)
        return MoultError(
            .databaseBusy, .busy, what: "cannot checkpoint \(path)",
            why: holders.isEmpty ? why : "\(why): \(holders.joined(separator: ", "))",
            now: "Close the programs that have it open, then try again.", cause: cause)
    }
}
