internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Replaces the content of a living file that others keep open: by SQLite's backup, under the write lock.
///
/// Readers switch at their next transaction, and no acknowledged write is lost: the rows to preserve are read after the
/// lock was taken. SQLite's commit is the point of no return, so this is the last thing that an update does.
struct LiveReplacement {
    let path: String
    let waiting: String
    let carrier: RowCarrier
    /// Whether the new content is there.
    let isDone: () throws -> Bool
    /// How long to wait for a writer to end its transaction.
    var patience: Int32 = 10_000

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
        let live = try Connection(path: path, access: .readWrite, busyTimeout: patience)
        let source = try Connection(path: waiting, access: .readWrite)
        if try live.header().isWAL { try throughTheWAL(live, source) } else { try underTheLock(live, source) }
        try source.close()
        try live.close()
    }

    private func throughTheWAL(_ live: Connection, _ source: Connection) throws {
        let backup = try Backup(from: source, to: live)
        // No pages yet: this takes the write lock, so that from here on nobody else commits.
        try wait { try backup.step(0) }
        let reader = try Connection(path: path, access: .readWrite, busyTimeout: patience)
        _ = try source.transaction(.immediate) { try carrier.carry(from: reader, to: source) }
        try reader.close()
        try wait { try backup.step(-1) }
        try backup.finish()
        // Else the WAL stays as large as the database, and the app's next small commit pays for it. A reader may keep
        // it from being truncated; then the app's own checkpoints do it.
        if try live.checkpoint(.truncate).isBusy { _ = try live.checkpoint(.passive) }
    }

    private func underTheLock(_ live: Connection, _ source: Connection) throws {
        // After the commit the lock stays, and backup works on the connection that has it.
        try live.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        _ = try live.int("SELECT count(*) FROM sqlite_schema")
        try live.execute("COMMIT")
        _ = try source.transaction(.immediate) { try carrier.carry(from: live, to: source) }
        let backup = try Backup(from: source, to: live)
        try wait { try backup.step(-1) }
        try backup.finish()
        try live.execute("PRAGMA locking_mode = NORMAL")
        // The lock goes with the next read.
        _ = try live.int("SELECT count(*) FROM sqlite_schema")
    }

    private func wait(_ step: () throws -> Backup.Progress) throws {
        let deadline = ContinuousClock.now + .milliseconds(Int(patience))
        while case .blocked = try step() {
            guard ContinuousClock.now < deadline else {
                throw MoultError(
                    .inUse, .busy, what: "\(path) is in use", why: "another connection keeps it locked",
                    now: "Try again later.")
            }
        }
    }
}
