import CSQLite

/// How long a checkpoint waits, and what it leaves.
package enum CheckpointMode: Int32, Sendable {
    case passive = 0
    case full = 1
    case restart = 2
    case truncate = 3
}

/// The result of a checkpoint.
package struct Checkpoint: Equatable, Sendable {
    /// A reader or writer prevented it from finishing.
    package var isBusy: Bool
    /// Frames in the WAL; -1 if the database is not in WAL mode.
    package var frames: Int32
    /// The number of these frames that are in the database file.
    package var checkpointed: Int32
}

extension Connection {
    /// Copies the WAL into the database file. Being unable to finish is a result, not an error.
    package func checkpoint(_ mode: CheckpointMode, schema: String = "main") throws -> Checkpoint {
        var frames: Int32 = -1
        var checkpointed: Int32 = -1
        let code = sqlite3_wal_checkpoint_v2(try handle, schema, mode.rawValue, &frames, &checkpointed)
        let isBusy = ResultCode.busy ~= ResultCode(code)
        if !isBusy { try check(code, doing: "checkpoint \(path)") }
        return Checkpoint(isBusy: isBusy, frames: frames, checkpointed: checkpointed)
    }
}
