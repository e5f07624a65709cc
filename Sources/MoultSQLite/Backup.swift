import CSQLite
import MoultBasics

/// SQLite's online backup, step by step: one database becomes a copy of another. The destination may be open in other processes:
/// they see the whole copy after the last step, and none of it before.
package final class Backup {
    package enum Progress: Equatable, Sendable {
        case done
        case more
        /// Another connection holds a lock; the same step may be retried.
        case blocked(ResultCode)
    }

    private var pointer: OpaquePointer?
    private let source: Connection
    private let destination: Connection

    package init(from source: Connection, to destination: Connection) throws {
        let handle = try destination.handle
        guard let backup = sqlite3_backup_init(handle, "main", try source.handle, "main") else {
            throw destination.failure(
                sqlite3_extended_errcode(handle), doing: "copy \(source.path) into \(destination.path)")
        }
        self.source = source
        self.destination = destination
        pointer = backup
    }

    deinit { abandon() }

    /// Copies this many pages. A negative number copies all remaining pages; 0 only takes the locks.
    package func step(_ pages: Int32) throws -> Progress {
        guard let pointer else { return .done }
        let code = sqlite3_backup_step(pointer, pages)
        switch ResultCode(code) {
        case .ok: return .more
        case .done: return .done
        case .busy, .locked: return .blocked(ResultCode(code))
        default: throw destination.failure(code, doing: doing)
        }
    }

    package var remaining: Int32 { pointer.map(sqlite3_backup_remaining) ?? 0 }
    package var pageCount: Int32 { pointer.map(sqlite3_backup_pagecount) ?? 0 }

    /// Ends the backup. If it is incomplete, the destination is unchanged.
    package func finish() throws {
        guard let pointer else { return }
        let code = sqlite3_backup_finish(pointer)
        self.pointer = nil
        // `step` already returned busy and locked as results.
        switch ResultCode(code) {
        case .ok, .busy, .locked: return
        default: throw destination.failure(code, doing: doing)
        }
    }

    /// Ends the backup. If it is incomplete, the destination stays as it was; `step` has thrown any error.
    package func abandon() {
        sqlite3_backup_finish(pointer)
        pointer = nil
    }

    private var doing: String { "copy \(source.path) into \(destination.path)" }
}

extension Connection {
    /// Replaces the destination's content with a copy of this database, in one step.
    package func backup(to destination: Connection) throws {
        let backup = try Backup(from: self, to: destination)
        let progress = try backup.step(-1)
        try backup.finish()
        try verify(progress, destination)
    }

    /// Replaces the destination's content with a copy of this database, in pieces of one megabyte. After each piece, `copied`
    /// gets the number of bytes copied so far; if it throws, the backup ends.
    package func backup(to destination: Connection, copied: (_ bytes: Int, _ total: Int) throws -> Void) throws {
        let pageSize = try header().pageSize
        // The read transaction spans all pieces, so that the copy has the state of a single commit.
        try execute("BEGIN; SELECT count(*) FROM sqlite_schema")
        let result = Result {
            let backup = try Backup(from: self, to: destination)
            var progress = Backup.Progress.more
            while progress == .more {
                progress = try backup.step(Int32(clamping: max(1, (1 << 20) / pageSize)))
                try copied(Int(backup.pageCount - backup.remaining) * pageSize, Int(backup.pageCount) * pageSize)
            }
            try backup.finish()
            return progress
        }
        try execute("COMMIT")
        try verify(result.get(), destination)
    }

    private func verify(_ progress: Backup.Progress, _ destination: Connection) throws {
        guard case .blocked(let code) = progress else { return }
        throw destination.failure(code.rawValue, doing: "copy \(path) into \(destination.path)")
    }
}
