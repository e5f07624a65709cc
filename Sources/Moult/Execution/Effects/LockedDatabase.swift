internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// A database of an app that an update locks, reads and writes through SQLite alone.
/// Its connections stay open from the first look to the end, so that `data_version` tells whether another process has committed
/// in between. The journal mode is a fact of the locked file: an app may change it at any time before.
final class LockedDatabase {
    let path: String
    /// The connection that takes the lock, and to which pages are written.
    private let writer: Connection
    /// Makes the first copy, and in WAL mode reads while `writer` holds the lock.
    private let reader: Connection
    /// The versions of the content before it was copied, as each connection counts them.
    private var versions: (writer: Int64, reader: Int64) = (0, 0)
    private var lock: Lock?
    /// Whether the database had a `-wal`, which a connection that writes nothing must leave in place.
    private let hadWAL: Bool
    /// The file that the connections have open.
    private let file: FileFacts?
    private var isWritten = false
    /// Whether the tables of the database cannot be listed; known after `tolerateDamage`.
    private(set) var hasDamagedSchema = false

    private enum Lock {
        /// The backup holds the write lock of a database in WAL mode.
        case wal(Backup)
        /// The connection keeps its exclusive lock on a database in rollback mode after its transaction.
        case exclusive
    }

    /// How long this process waits for a lock at a time, in milliseconds: less than the usual busy timeouts of apps, because apps may
    /// have to wait for as long.
    private static let turn: Int32 = 1_000

    init(_ path: String) throws {
        self.path = path
        file = try Files.factsThroughLinks(path)
        let sidecars = try Sidecars.of(path)
        hadWAL = sidecars.wal != nil
        // SQLite would delete the sidecars of an empty file, which may have rows.
        if file?.size == 0, !sidecars.isEmpty { throw Self.inUse(path) }
        writer = try Connection(path: path, access: .readWrite, busyTimeout: Self.turn)
        reader = try Connection(path: path, access: .readWrite, busyTimeout: Self.turn)
    }

    /// The page size that the new content must have; nil if SQLite can change it, which is so in rollback mode.
    var requiredPageSize: Int? { get throws { try isWAL ? writer.header().pageSize : nil } }

    func accepts(_ source: Connection) throws -> Bool {
        guard let size = try requiredPageSize else { return true }
        return try size == source.header().pageSize
    }

    /// Whether the header says WAL mode; under the lock, the mode of the database.
    private var isWAL: Bool { get throws { try writer.fileSize() > 0 && writer.header().isWAL } }

    // MARK: without a lock

    /// Copies the content into a private file. In rollback mode the copy is made in pieces, so that apps can commit; after
    /// two seconds the rest is copied in one piece, because SQLite begins again after each commit.
    func copyContent(to copy: String, patience: Duration) throws {
        versions = (try writer.int("PRAGMA data_version"), try reader.int("PRAGMA data_version"))
        let target = try Connection(unsynced: copy, access: .readWriteCreate)
        let backup = try Backup(from: reader, to: target)
        let begin = ContinuousClock.now
        var backoff = Backoff(patience, longest: 10)
        let pieces = try isWAL ? -1 : Self.pagesOfPiece
        while true {
            let isLate = ContinuousClock.now - begin > Self.timeForPieces
            switch try backup.step(isLate ? -1 : pieces) {
            case .done:
                try backup.finish()
                return try target.close()
            case .more: backoff = Backoff(patience, longest: 10)
            case .blocked: guard backoff.pause() else { throw Self.inUse(path) }
            }
        }
    }

    private static let pagesOfPiece: Int32 = 100
    private static let timeForPieces = Duration.seconds(2)

    // MARK: the lock

    /// Takes the write lock in the journal mode that the locked file has. `source` is the file from which pages will be copied.
    func lock(from source: Connection) throws {
        try naming {
            for _ in 0..<Self.maxAttempts { if try isWAL ? lockWAL(source) : lockRollbackMode() { return } }
            // An app changes the journal mode all the time.
            throw Self.inUse(path)
        }
    }

    private static let maxAttempts = 10

    /// Takes the lock that also keeps readers out; returns false if the database is in WAL mode. While the lock is held, no process
    /// can change the mode.
    private func lockRollbackMode() throws -> Bool {
        do { try writer.execute("BEGIN EXCLUSIVE") } catch let error as MoultError where Self.isBusy(error) {
            return try lockBetweenReaders()
        }
        return try keepLock { try writer.execute("COMMIT") }
    }

    /// Takes the lock where readers follow each other without a pause. `BEGIN EXCLUSIVE` admits new readers while it waits for the
    /// old ones, and would never succeed; a commit admits none, so this commits a transaction that changes nothing.
    private func lockBetweenReaders() throws -> Bool {
        try writer.execute("BEGIN IMMEDIATE")
        return try keepLock {
            let version = try writer.int("PRAGMA user_version")
            try writer.execute("PRAGMA user_version = \(version); COMMIT")
        }
    }

    /// Ends the transaction in exclusive mode, in which the lock stays. The mode is set only in the transaction: a connection in
    /// this mode keeps its read lock while it waits for a writer that itself waits for that lock.
    private func keepLock(_ commit: () throws -> Void) throws -> Bool {
        do {
            guard try writer.scalar("PRAGMA main.journal_mode") != .text("wal") else {
                try writer.execute("ROLLBACK")
                return false
            }
            try writer.execute("PRAGMA main.locking_mode = EXCLUSIVE")
            _ = try writer.int("PRAGMA schema_version")
            try commit()
        } catch {
            if try writer.isInTransaction { try writer.execute("ROLLBACK") }
            try leaveExclusiveMode()
            throw error
        }
        lock = .exclusive
        return true
    }

    private func leaveExclusiveMode() throws {
        try writer.execute("PRAGMA main.locking_mode = NORMAL")
        // The lock goes with the next access.
        _ = try writer.int("PRAGMA schema_version")
    }

    /// Takes the write lock of a database in WAL mode; returns false if it is in another mode.
    private func lockWAL(_ source: Connection) throws -> Bool {
        let backup = try Backup(from: source, to: writer)
        // Copies no pages yet, but takes the lock, so that no other process commits from here on.
        try waitForTurn(.milliseconds(Int(Self.turn))) { try backup.step(0) }
        guard try isWAL else {
            try backup.finish()
            return false
        }
        lock = .wal(backup)
        return true
    }

    func unlock() throws {
        let held = lock
        lock = nil
        switch held {
        case .wal(let backup): backup.abandon()
        case .exclusive: try leaveExclusiveMode()
        case nil: return
        }
    }

    // MARK: under the lock

    /// Throws if the path leads to another file by now: SQLite would go on writing to the old one.
    func requirePlace() throws {
        if let file, try file.isSameFile(Files.factsThroughLinks(path)) { return }
        throw MoultError(
            .inUse, .busy, what: "\(path) was replaced by another file during the update",
            why: "moult writes only to the file at that path", now: "Nothing was changed. Try again.")
    }

    func hasChanged() throws -> Bool {
        switch lock {
        case .wal: try reader.int("PRAGMA data_version") != versions.reader
        case .exclusive: try writer.int("PRAGMA data_version") != versions.writer
        case nil: true
        }
    }

    /// The transaction that the marker in the locked content names; nil for content without a readable schema, too.
    func marker() throws -> String? {
        do { return try TransactionMarker.read(lockedReader) } catch let error as MoultError
            where error.code == .databaseCorrupt
        { return nil }
    }

    /// The connection that may read the locked content, until `backup` is called.
    var lockedReader: Connection { if case .wal? = lock { reader } else { writer } }

    func copyLockedContent(to copy: String) throws {
        let target = try Connection(unsynced: copy, access: .readWriteCreate)
        try lockedReader.backup(to: target)
        try target.close()
    }

    /// Returns the backup that copies the new content here. From here on, only the backup may use the file.
    func backup(from source: Connection) throws -> Backup {
        if case .wal(let backup)? = lock { return backup }
        return try Backup(from: source, to: writer)
    }

    /// Copies all pages but the last to the disk, although they are not committed yet: in WAL mode to the `-wal`, in rollback mode to
    /// the file itself, of which SQLite's journal then has the old pages. A full disk shows here.
    func copyPages(_ backup: Backup) throws {
        // Counts the pages, and copies none.
        if case .blocked = try backup.step(0) { throw Self.inUse(path) }
        while backup.remaining > 1 {
            if case .blocked = try backup.step(min(backup.remaining - 1, 4096)) { throw Self.inUse(path) }
        }
        try writer.flushCache()
    }

    func commit(_ backup: Backup, patience: Duration) throws {
        try waitForTurn(patience) { try backup.step(-1) }
        try backup.finish()
    }

    /// Makes the one checkpoint after pages were written, on the connection that wrote them. A reader may block it. Writers would
    /// wait for that reader as well, so it gets only one turn.
    func checkpoint() throws {
        isWritten = true
        guard try isWAL else { return }
        _ = try writer.checkpoint()
    }

    func endFailedCommit(_ error: any Error) throws { try writer.endFailedCommit(error) }

    /// Ends an attempt that has failed after its pages were written, or even in its commit. The `-wal` would stay as large as the new
    /// content.
    func endFailedWrite(_ error: any Error, isCommitting: Bool) throws {
        if isCommitting { try endFailedCommit(error) } else { try checkpoint() }
    }

    /// Cuts the file of a database without content to 0 bytes, if the journal mode allows it.
    func truncateEmptyFile() throws { if case .exclusive? = lock { try writer.truncateEmptyFile() } }

    /// Makes connections that only copy pages and take locks accept a damaged schema.
    func tolerateDamage() throws {
        for connection in [writer, reader] where try !Self.tolerateDamage(connection) { hasDamagedSchema = true }
    }

    /// Returns whether the schema is sound.
    private static func tolerateDamage(_ connection: Connection) throws -> Bool {
        try connection.execute("PRAGMA writable_schema = ON")
        // The first statement that loads a damaged schema reports it, and later ones do not.
        do { _ = try connection.scalar("PRAGMA main.journal_mode") } catch let error as MoultError
            where error.code == .databaseCorrupt
        { return false }
        return true
    }

    func close() throws {
        lock = nil
        for connection in [reader, writer] where connection.isOpen {
            // The last connection to close would checkpoint the app's own WAL: harmless, but a change that a refused update must
            // not make.
            if hadWAL, !isWritten { try connection.set(.noCheckpointOnClose, true) }
            try connection.close()
        }
    }

    // MARK: waiting

    private func waitForTurn(_ patience: Duration, _ step: () throws -> Backup.Progress) throws {
        let deadline = ContinuousClock.now + patience
        while case .blocked = try step() { guard ContinuousClock.now < deadline else { throw Self.inUse(path) } }
    }

    /// Reports a lock of another process as such.
    func naming<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError where Self.isBusy(error) {
            throw Self.inUse(path, cause: error)
        }
    }

    private static func isBusy(_ error: MoultError) -> Bool { error.sqlite != nil && error.outcome == .busy }

    static func inUse(_ path: String, cause: (any Error)? = nil) -> MoultError {
        InUse.error(
            path, advice: "Try again when that program has ended its transaction, or stop the program.", cause: cause)
    }
}

extension Connection {
    /// Opens a private file. It needs no syncs: after a crash it is made again.
    convenience init(unsynced path: String, access: Access = .readWrite, shownAs name: String? = nil) throws {
        try self.init(path: path, access: access, shownAs: name)
        try execute("PRAGMA synchronous = OFF")
    }

    func write(to path: String, pageSize: Int) throws {
        try run("PRAGMA page_size = \(pageSize)")
        _ = try query("VACUUM INTO ?1", [.text(path)])
    }

    private struct NothingChanged: Error {}

    /// Runs the body in a transaction, which is rolled back if the result is nil.
    func changing<R>(_ body: () throws -> R?) throws -> R? {
        do {
            return try transaction(.immediate) {
                guard let result = try body() else { throw NothingChanged() }
                return result
            }
        } catch is NothingChanged { return nil }
    }
}
