internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Replaces the content of a living file that others keep open: by SQLite's backup, under the write lock.
///
/// Readers switch at their next transaction, and no acknowledged write is lost: the rows to preserve are read after the
/// lock was taken. SQLite's commit is the point of no return, so this is the last thing that an update does.
final class LiveReplacement {
    let path: String
    let waiting: String
    let carrier: RowCarrier
    /// Looks whether the new content is there.
    private let look: () throws -> Bool
    /// Whether SQLite was asked for the commit, so that only a look can tell what became of it.
    private var isBegun = false

    /// How long to wait for a writer to end its transaction, in milliseconds.
    private let patience: Int32 = 10_000
    /// How long others may be kept waiting at once: less than the busy timeout that apps commonly set.
    private let turn: Int32 = 1_000

    init(path: String, waiting: String, carrier: RowCarrier, look: @escaping () throws -> Bool) {
        (self.path, self.waiting, self.carrier, self.look) = (path, waiting, carrier, look)
    }

    /// Whether the new content is there.
    func isDone() throws -> Bool { try isBegun && look() }

    /// What can be known before the decision: that it can work at all.
    func prove() throws {
        let live = try Connection(path: path, access: .readWrite, busyTimeout: patience)
        let source = try Connection(path: waiting, access: .readWrite)
        let (there, new) = try (live.header(), source.header())
        if there.isWAL, there.pageSize != new.pageSize {
            throw MoultError(
                .inUse, .refused, what: "\(path) cannot be replaced while it is open",
                why:
                    "its pages have \(there.pageSize) bytes, those of the release \(new.pageSize), and it is in WAL mode",
                now: "Publish the release with that page size, or with \"replace\": \"exchange\".")
        }
        // The rows that are there now fit; those that come until the end are carried over again.
        try carrier.trial(from: live, to: source)
        try source.close()
        try live.close()
    }

    func perform() throws {
        let source = try Connection(path: waiting, access: .readWrite)
        let live = try Connection(path: path, access: .readWrite, busyTimeout: patience)
        if try live.header().isWAL {
            try throughTheWAL(live, source)
            try live.close()
        } else {
            try live.close()
            try underTheLock(source)
        }
        try source.close()
    }

    private func throughTheWAL(_ live: Connection, _ source: Connection) throws {
        let backup = try Backup(from: source, to: live)
        // No pages yet: this takes the write lock, so that from here on nobody else commits.
        try wait { try backup.step(0) }
        let reader = try Connection(path: path, access: .readWrite, busyTimeout: patience)
        _ = try source.transaction(.immediate) { try carrier.carry(from: reader, to: source) }
        try reader.close()
        isBegun = true
        try wait { try backup.step(-1) }
        try backup.finish()
        // Else the WAL stays as large as the database, and the app's next small commit pays for it. Most of that is done
        // while others write; a reader may keep the rest from being done, and writers would wait for him with us.
        _ = try live.checkpoint(.passive)
        try live.setBusyTimeout(milliseconds: turn)
        _ = try live.checkpoint(.truncate)
    }

    private func underTheLock(_ source: Connection) throws {
        let live = try locked()
        _ = try source.transaction(.immediate) { try carrier.carry(from: live, to: source) }
        let backup = try Backup(from: source, to: live)
        isBegun = true
        try wait { try backup.step(-1) }
        try backup.finish()
        try live.execute("PRAGMA locking_mode = NORMAL")
        // The lock goes with the next read.
        _ = try live.int("SELECT count(*) FROM sqlite_schema")
        try live.close()
    }

    /// A connection that has the file for itself, also when its transaction is over: backup works on that one.
    ///
    /// `BEGIN EXCLUSIVE` would never get there beside readers who take turns, because it lets new ones in while it waits
    /// for the old ones. A commit does not; so it commits something that changes nothing. But it keeps the new ones
    /// waiting for a moment only, and then lets them in before it tries again.
    private func locked() throws -> Connection {
        let deadline = ContinuousClock.now + .milliseconds(Int(patience))
        while true {
            let live = try Connection(path: path, access: .readWrite, busyTimeout: turn)
            do {
                // In exclusive mode a connection keeps its reader's lock while it waits for a writer, who waits for that lock.
                try live.execute("BEGIN IMMEDIATE; PRAGMA locking_mode = EXCLUSIVE")
                let version = try live.int("PRAGMA user_version")
                try live.execute("PRAGMA user_version = \(version); COMMIT")
                return live
            } catch {
                if try live.isInTransaction { try live.execute("ROLLBACK") }
                try live.close()
                guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code else { throw error }
                if ContinuousClock.now >= deadline { throw inUse() }
            }
        }
    }

    private func wait(_ step: () throws -> Backup.Progress) throws {
        let deadline = ContinuousClock.now + .milliseconds(Int(patience))
        while case .blocked = try step() {
            guard ContinuousClock.now < deadline else {
                throw inUse()
            }
        }
    }

    private func inUse() -> MoultError {
        MoultError(
            .inUse, .busy, what: "\(path) is in use", why: "another connection keeps it locked", now: "Try again later."
        )
    }
}
