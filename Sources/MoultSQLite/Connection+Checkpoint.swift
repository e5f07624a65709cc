import CSQLite

/// SQLite's checkpoint modes: how long a checkpoint waits, and whether it resets or truncates the WAL.
package enum CheckpointMode: Int32, Sendable {
    case passive = 0
    case full = 1
    case restart = 2
    case truncate = 3
}

/// The result of a checkpoint.
package struct Checkpoint: Equatable, Sendable {
    /// Whether a reader or writer prevented the checkpoint from finishing.
    package var isBusy: Bool
    /// The number of frames in the WAL; -1 if the database is not in WAL mode.
    package var frames: Int32
    /// The number of these frames that are in the database file.
    package var checkpointed: Int32
}

extension Connection {
    /// Writes the changed pages of the current transaction to the file or the `-wal`, so that a full disk is found before the
    /// commit.
    package func flushCache() throws {
        try check(sqlite3_db_cacheflush(try handle), doing: "write the pages of \(path)")
    }

    /// Copies the WAL into the database file. A checkpoint that cannot finish is a result (`isBusy`), not an error.
    package func checkpoint(_ mode: CheckpointMode, schema: String = "main") throws -> Checkpoint {
        var frames: Int32 = -1
        var checkpointed: Int32 = -1
        let code = sqlite3_wal_checkpoint_v2(try handle, schema, mode.rawValue, &frames, &checkpointed)
        let isBusy = ResultCode.busy ~= ResultCode(code)
        if !isBusy { try check(code, doing: "checkpoint \(path)") }
        return Checkpoint(isBusy: isBusy, frames: frames, checkpointed: checkpointed)
    }
}
