internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Replaces the content of a file that other processes keep open, using SQLite's backup under the write lock.
///
/// Readers switch at their next transaction, and no acknowledged write is lost: the rows to preserve are read after the lock is
/// taken, and the lock is held until the commit. The commit is the point of no return.
final class LiveReplacement: WritableEffect {
    let effect: Effect
    let place: String
    let waiting: String
    let displacement: Displacement?
    private let transfer: ContentTransfer
    /// Returns whether the new content is in place.
    private let isDone: () throws -> Bool
    /// Receives the old database while it is locked.
    private let adopt: (Connection) throws -> Void

    private var source: Connection?
    private var live: Connection?
    private var backup: BackupBox?
    private var isWAL = false
    /// Whether copying pages has begun: from then on, only reading the file shows whether the commit took effect.
    private var isBegun = false
    /// The schema version of the old content. A backup increases it, so recovery can recognize old content that already has the
    /// release's marker.
    private var before: UInt64?
    private var isEnded = false

    /// The longest time for which other processes have to wait without a break, in milliseconds: less than the busy timeout of
    /// most apps.
    private static let turn: Int32 = 1_000
    /// How many seconds the commit waits for readers.
    private let patience: Int

    init(
        _ effect: Effect, place: String, waiting: String, transfer: ContentTransfer, displacement: Displacement,
        patience: Int, adopt: @escaping (Connection) throws -> Void = { _ in }, isDone: @escaping () throws -> Bool
    ) {
        (self.effect, self.place, self.waiting) = (effect, place, waiting)
        (self.transfer, self.displacement, self.adopt, self.isDone) = (transfer, displacement, adopt, isDone)
        self.patience = patience
    }

    /// Returns the key under which the old content's schema version is recorded.
    static func key(_ path: String) -> String { "schema/\(path)" }

    static func schemaVersion(_ connection: Connection) throws -> UInt64 {
        UInt64(truncatingIfNeeded: try connection.int("PRAGMA schema_version"))
    }

    var facts: [String: UInt64] {
        guard case .replace(let path, _, _, _, _, _, _) = effect.change, let before else { return [:] }
        return [Self.key(path): before]
    }

    /// Takes the write lock; throws `.inUse` if that takes longer than `turn`.
    func acquire() throws {
        let source = try Connection(path: waiting, access: .readWrite)
        self.source = source
        try Self.requireReplaceable(place, by: source.header(), openIn: OpenFiles.holder(of: place))
        do {
            let probe = try Connection(path: place, access: .readWrite, busyTimeout: Self.turn)
            isWAL = try probe.header().isWAL
            if isWAL {
                try holdWAL(probe, source)
            } else {
                try probe.close()
                try holdRollbackMode()
            }
        } catch {
            try release()
            guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code || ResultCode.locked ~= code else {
                throw error
            }
            throw inUse(error)
        }
    }

    /// Throws if the file cannot be replaced while it is open: a connection keeps the text encoding of the first schema that it
    /// read, and SQLite cannot change the page size of a file in WAL mode. Only opens the file, and changes nothing, so that a plan
    /// can ask as well. `holder` is a program that keeps the file open during the replacement.
    static func requireReplaceable(_ place: String, by new: DatabaseHeader, openIn holder: String?) throws {
        let there = try Connection.header(ofFileAt: place)
        if let holder, let old = there.encoding, let encoding = new.encoding, old != encoding {
            throw MoultError(
                .inUse, .refused, what: "\(place) cannot be replaced while it is open",
                why:
                    "the text encoding of the file is \(old), that of the release is \(encoding), and \(holder) has the file open",
                now: "Stop that program, and try again.")
        }
        guard there.isWAL, there.pageSize != new.pageSize else { return }
        let why =
            "the page size of the file is \(there.pageSize), that of the release is \(new.pageSize), and the file is in WAL mode"
        // A program that has only been stopped leaves the file in WAL mode, and the file may have to stay in any case.
        let leaveWAL = shellLine(["sqlite3", place, "PRAGMA journal_mode = DELETE"])
        throw MoultError(
            .inUse, .refused, what: "\(place) cannot be replaced live", why: why,
            now: (holder.map { "Stop \($0), then take" } ?? "Take")
                + " the file out of WAL mode and repeat the command: \(leaveWAL)")
    }

    private func holdWAL(_ live: Connection, _ source: Connection) throws {
        let backup = try BackupBox(from: source, to: live)
        (self.live, self.backup) = (live, backup)
        // Copies no pages yet, but takes the write lock, so that no other process commits from here on.
        try waitForTurn { try backup.step(0) }
    }

    private func holdRollbackMode() throws {
        live = try locked()
    }

    /// Carries the rows over into the staged file, under the lock.
    func hold() throws {
        guard let source, let live else { return }
        if isWAL {
            let reader = try Connection(path: place, access: .readWrite, busyTimeout: Self.turn)
            try carry(from: reader, to: source)
            try reader.close()
        } else {
            try carry(from: live, to: source)
            backup = try BackupBox(from: source, to: live)
        }
    }

    private func carry(from old: Connection, to source: Connection) throws {
        before = try Self.schemaVersion(old)
        _ = try source.transaction(.immediate) { try transfer.run(from: old, to: source, displacement) }
        try adopt(old)
        if displacement?.isKept == true { try displacement?.keepCopy(of: old) }
    }

    /// Returns a connection that keeps exclusive access to the file even after its transaction has ended. The backup uses this
    /// connection.
    ///
    /// `BEGIN EXCLUSIVE` would never succeed while readers take turns, because it admits new readers while it waits for the old
    /// ones. A commit admits none while it waits, so this commits a transaction that changes nothing. An attempt to commit
    /// blocks new readers only briefly, and they are admitted before the next attempt.
    private func locked() throws -> Connection {
        let live = try Connection(path: place, access: .readWrite, busyTimeout: Self.turn)
        do {
            // In exclusive mode, a connection keeps its read lock while it waits for a writer that itself waits for that lock.
            try live.execute("BEGIN IMMEDIATE; PRAGMA locking_mode = EXCLUSIVE")
            let version = try live.int("PRAGMA user_version")
            try live.execute("PRAGMA user_version = \(version); COMMIT")
            return live
        } catch {
            if try live.isInTransaction { try live.execute("ROLLBACK") }
            try live.close()
            throw error
        }
    }

    /// Copies all pages but the last, so that running out of space is detected before the first commit of any database.
    func stage() throws {
        guard let backup else { return }
        isBegun = true
        while true {
            let count = backup.remaining == 0 ? 1 : backup.remaining - 1
            if count <= 0 { return }
            if case .blocked = try backup.step(min(count, 4096)) { throw inUse(nil) }
            if backup.remaining <= 1 { return }
        }
    }

    func commit() throws -> Bool {
        guard let backup, let live else { return false }
        try waitForReaders { try backup.step(-1) }
        try backup.finish()
        self.backup = nil
        isEnded = true
        guard isWAL else { return true }
        // Without a checkpoint, the WAL stays as large as the database, and the app's next small commit would have to copy it.
        // Most of the checkpoint is done while other processes write. A reader may block the rest, and writers would wait for
        // that reader as well, so the rest gets only one turn.
        _ = try live.checkpoint(.passive)
        try live.setBusyTimeout(milliseconds: Self.turn)
        _ = try live.checkpoint(.truncate)
        return true
    }

    func isCommitted(despite error: any Error) throws -> Bool {
        if isEnded || !isBegun { return isEnded }
        // Ends the backup's transaction.
        backup = nil
        try live?.endFailedCommit(error)
        // This process's own lock would block the connection that checks the file.
        try release()
        return try isDone()
    }

    func finish() throws { try release() }

    func release() throws {
        backup = nil
        try source?.close()
        source = nil
        try live?.close()
        live = nil
    }

    private func waitForTurn(_ step: () throws -> Backup.Progress) throws {
        try wait(.milliseconds(Int(Self.turn)), step)
    }

    private func waitForReaders(_ step: () throws -> Backup.Progress) throws { try wait(.seconds(patience), step) }

    private func wait(_ patience: Duration, _ step: () throws -> Backup.Progress) throws {
        let deadline = ContinuousClock.now + patience
        while case .blocked = try step() {
            guard ContinuousClock.now < deadline else { throw inUse(nil) }
        }
    }

    private func inUse(_ cause: (any Error)?) -> MoultError {
        InUse.error(
            place, advice: "Try again when that program has ended its transaction, or stop the program.", cause: cause)
    }
}

/// A class that stores a noncopyable `Backup`. The backup locks its destination from the first step on.
private final class BackupBox {
    private var backup: Backup?

    init(from source: Connection, to destination: Connection) throws {
        backup = try Backup(from: source, to: destination)
    }

    func step(_ pages: Int32) throws -> Backup.Progress {
        switch backup {
        case .some(let backup): return try backup.step(pages)
        case .none: return .done
        }
    }

    var remaining: Int32 {
        switch backup {
        case .some(let backup): return backup.remaining
        case .none: return 0
        }
    }

    func finish() throws {
        guard let finished = backup.take() else { return }
        try finished.finish()
    }
}
