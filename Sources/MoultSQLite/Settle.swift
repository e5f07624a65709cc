import MoultBasics
import MoultFiles

/// Brings a database that nobody uses into one file: what its sidecars hold is in it, and they are gone.
package enum Settle {
    /// Rolls back or checkpoints what is left, switches to rollback mode, and proves that no sidecar remains.
    ///
    /// Sidecars are never deleted by hand: a `-wal` may hold committed rows, a `-journal` the only way back.
    package static func checkpointAndSeal(_ path: String, busyTimeout: Int32 = 5000) throws {
        let connection = try Connection(path: path, access: .readWrite, busyTimeout: busyTimeout)
        // A hot journal is rolled back by the first read.
        _ = try connection.int("PRAGMA schema_version")
        let checkpoint = try connection.checkpoint(.truncate)
        guard !checkpoint.isBusy else { throw busy(path, "another connection kept the checkpoint from finishing") }
        // Only from PERSIST does SQLite remove a journal that an earlier connection left behind.
        for mode in ["persist", "delete"] {
            guard try connection.scalar("PRAGMA journal_mode = \(mode)") == .text(mode) else {
                throw busy(path, "it stays in WAL mode, because another connection has it open")
            }
        }
        try connection.close()
        let left = try Sidecars.of(path)
        guard left.isEmpty else {
            throw busy(path, "somebody opened it meanwhile: \(left.paths.joined(separator: ", ")) is there")
        }
    }

    private static func busy(_ path: String, _ why: String) -> MoultError {
        MoultError(
            .databaseBusy, .busy, what: "cannot bring \(path) into one file", why: why,
            now: "Close the programs that have it open, then try again")
    }
}
