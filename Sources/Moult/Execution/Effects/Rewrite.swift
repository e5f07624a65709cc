internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Performs `Change.replace`: replaces the content of a database in place, by one transaction of SQLite. The file keeps its inode,
/// owner, mode and journal mode; connections of apps stay valid, and switch to the new content at their next transaction.
/// Rows are carried over from a private copy, without a lock (`prepareUnlocked`). Under the write lock (`acquire`), a database that an
/// app has changed since is copied again, and only the difference is carried (`prepareLocked`); then all pages but the last are copied
/// (`copyPages`). Up to the commit, other connections see the old content, or wait in rollback mode. The decision comes before the
/// commit; after the first commit of any database, the update can only be finished.
final class Rewrite: WritableEffect {
    private let transfer: ContentTransfer
    /// The file of the release, from which the staged file was made.
    private let shippedFile: String
    /// Whether apps have asked for the rows that updates change.
    private let recordsChanges: Bool
    private var releaseRow: [Value]?
    /// Whether the staged file has another page size than the shipped file.
    private var isRepaged = false

    private var live: LockedDatabase?
    private var staged: Connection?
    private var backup: Backup?
    private var carried: ContentTransfer.Carried?
    private var isBegun = false
    private var isEnded = false

    private var stagedFile: String { transaction.waiting(path) }
    private var patience: Duration { .seconds(transaction.patience) }

    init(
        _ effect: Effect, at path: String, in transaction: Transaction, shippedFile: String,
        _ transfer: ContentTransfer, _ displacement: Displacement, recordsChanges: Bool
    ) {
        (self.shippedFile, self.transfer, self.recordsChanges) = (shippedFile, transfer, recordsChanges)
        super.init(effect, at: path, in: transaction, displacement)
    }

    // MARK: without a lock

    /// Copies the old content, and carries its rows over into the staged file.
    override func prepareUnlocked() throws {
        // Another attempt begins with the staged file as it was.
        if live != nil { try restoreStagedFile() }
        try discard()
        let live = try self.live ?? LockedDatabase(place)
        self.live = live
        try live.naming { try live.copyContent(to: copy, patience: patience) }
        let old = try openCopy(copy)
        try prepareStagedFile(pageSize: live.requiredPageSize, old)
        if isRepaged { try Files.copy(stagedFile, to: repaged, mode: 0o600) }
        try carry(from: old)
        try findChangedRows(since: old)
        try old.close()
        // Under the lock, only the name has to be synced.
        if let displacement, displacement.isKept { try Files.syncFile(displacement.kept(of: copy)) }
    }

    override func rehearse() throws {
        try discard()
        try NonInvasiveReader.copy(place, to: copy)
        let old = try openCopy(copy)
        try prepareStagedFile(pageSize: nil, old)
        try carry(from: old)
        try old.close()
        try staged?.close()
        staged = nil
    }

    /// The copy of a staged file that has another page size than the shipped file.
    private var repaged: String { "\(copy).paged" }
    /// The shipped content, with the page size of the staged file.
    private var shippedContent: String { isRepaged ? repaged : shippedFile }

    private func discard() throws {
        try Files.ensureDirectory(Files.directory(of: copy), mode: 0o700)
        for path in [copy, repaged] + (displacement?.rows.map { [$0] } ?? []) {
            try ([""] + SidecarSuffixes.all).forEach { try Files.remove(path + $0) }
        }
    }

    /// Gives the staged file the page size of a file in WAL mode, which SQLite cannot change.
    private func prepareStagedFile(pageSize: Int?, _ old: Connection) throws {
        let staged = try Connection(path: stagedFile, access: .readWrite)
        try requireSameEncoding(old, staged)
        releaseRow = nil
        if try staged.int(ReleaseMarker.isThere) == 1 { releaseRow = try staged.query(ReleaseMarker.row).first }
        isRepaged = false
        if let size = pageSize, try size != staged.header().pageSize {
            let paged = "\(stagedFile).paged"
            try Files.remove(paged)
            try staged.write(to: paged, pageSize: size)
            try Files.seal(paged, mode: 0o644)
            isRepaged = true
        }
        try staged.close()
        if isRepaged { try Files.rename("\(stagedFile).paged", to: stagedFile) }
    }

    /// Throws if the new content has another text encoding than a copy of the old: an open connection keeps the encoding of the
    /// first schema that it read. A database in WAL mode may have its first pages, and so its encoding, only in the -wal.
    private func requireSameEncoding(_ old: Connection, _ new: Connection) throws {
        try WritableFile.requireSameEncoding(
            place, old.header().encoding?.description, new.header().encoding?.description)
    }

    private func carry(from old: Connection) throws {
        let staged = try self.staged ?? Connection(unsynced: stagedFile)
        self.staged = staged
        carried = nil
        do {
            carried = try staged.transaction(.immediate) {
                try TransactionMarker.write(transaction.id, to: staged)
                return try transfer.run(from: old, to: staged, displacement)
            }
        } catch let error as MoultError where error.code == .databaseCorrupt && transfer.isForeign {
            // No table of the old file can be read, and the whole file is kept.
            if transfer.mustCarry { throw MoultError.unreadable(transfer.database, nil, error) }
            displacement?.prove([], hasContentLeft: true)
            try staged.transaction(.immediate) { try TransactionMarker.write(transaction.id, to: staged) }
        }
    }

    // MARK: under the lock

    /// Takes the write lock; throws `.inUse` if other processes do not let it go in a few turns, or have changed the journal mode.
    override func acquire() throws {
        guard let live, let staged else { return }
        try live.lock(from: staged)
        // An app has set WAL mode since the staged file was prepared. The next attempt gives that file the right page size.
        if try live.accepts(staged) { return }
        try live.unlock()
        self.staged = nil
        try staged.close()
        try prepareUnlocked()
        throw LockedDatabase.inUse(place)
    }

    override func unlock() throws { try live?.unlock() }

    /// Brings the staged file and the kept copy up to date with what apps have written since `prepareUnlocked`.
    override func prepareLocked() throws {
        guard let live else { return }
        try WritableFile.requireSoleName(place)
        try live.requirePlace()
        marker = OldMarker(transaction: try live.marker())
        if try live.hasChanged() { try carryAgain(live) }
        if displacement?.isKept == true { try displacement?.keep(copy: copy) }
        guard let staged else { return }
        backup = try live.backup(from: staged)
        // The space is needed for the pages.
        try discard()
    }

    private func carryAgain(_ live: LockedDatabase) throws {
        guard let staged else { return }
        let present = "\(copy).present"
        try Files.remove(present)
        try live.copyLockedContent(to: present)
        let (before, now, shipped) = (try openCopy(copy), try openCopy(present), try openCopy(shippedContent))
        try requireSameEncoding(now, staged)
        let updated = try carried.flatMap { carried in
            try staged.changing {
                try ContentTransfer.update(carried, from: before, to: now, in: staged, pristine: shipped, displacement)
            }
        }
        if let updated {
            carried = updated
        } else {
            try restore(staged, from: shipped)
            try carry(from: now)
        }
        changedRows = nil
        if try Files.facts(present)?.size ?? .max <= Self.comparedUnderLock { try findChangedRows(since: now) }
        for connection in [before, now, shipped] { try connection.close() }
        try Files.rename(present, to: copy)
    }

    /// The largest database whose content is compared again under the lock, in bytes: a few milliseconds.
    private static let comparedUnderLock = 2 << 20

    /// Compares the old content with the new one. An error does not fail the update: all rows then count as changed.
    private func findChangedRows(since old: Connection) throws {
        changedRows = nil
        guard recordsChanges, let staged, let name = effect.database, !transfer.isForeign else { return }
        do {
            changedRows = DatabaseChanges(
                name, tables: try ChangedRows.between(old, staged, limit: DatabaseChanges.standardLimit))
        } catch let error as MoultError where error.code != .interrupted {
            changedRows = DatabaseChanges(name, reload: error.why ?? error.what)
        }
    }

    private func restoreStagedFile() throws {
        let staged = try self.staged ?? Connection(unsynced: stagedFile)
        let shipped = try openCopy(shippedContent)
        try restore(staged, from: shipped)
        try shipped.close()
        try staged.close()
        self.staged = nil
    }

    private func restore(_ staged: Connection, from shipped: Connection) throws {
        try shipped.backup(to: staged)
        guard let releaseRow, !isRepaged else { return }
        try staged.transaction(.immediate) {
            try staged.execute(ReleaseMarker.create)
            _ = try staged.query(ReleaseMarker.insert, releaseRow)
        }
    }

    /// Opens a private copy. Errors name the database.
    private func openCopy(_ path: String) throws -> Connection {
        try Connection(path: path, access: .immutable, shownAs: place)
    }

    override func copyPages() throws {
        guard let backup, let live else { return }
        isBegun = true
        try live.copyPages(backup)
    }

    override func commit() throws -> Bool {
        guard let backup, let live else { return false }
        try live.commit(backup, patience: patience)
        self.backup = nil
        isEnded = true
        try live.checkpoint()
        return true
    }

    override func endFailedCommit(_ error: any Error) throws {
        guard isBegun, !isEnded else { return }
        // Ends the backup's transaction.
        backup?.abandon()
        backup = nil
        try live?.endFailedCommit(error)
    }

    override func finish() throws { try release() }

    override func release() throws {
        let isUnfinished = backup != nil && isBegun
        backup?.abandon()
        backup = nil
        try live?.unlock()
        try staged?.close()
        staged = nil
        // Otherwise the -wal would stay as large as the release.
        if isUnfinished { try live?.checkpoint() }
        try live?.close()
        live = nil
    }
}
