internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Replaces the content of a database in place, by one transaction of SQLite. The file keeps its inode, owner, mode and journal
/// mode; connections of apps stay valid, and switch to the new content at their next transaction.
///
/// Rows are carried over from a private copy, without a lock (`examine`). Under the write lock (`acquire`), only the rows that
/// apps have written since are read again (`hold`), and all pages but the last are copied (`copyPages`). Up to the commit, which is
/// the point of no return, other connections see the old content.
final class Rewrite: WritableEffect {
    let effect: Effect
    let place: String
    let waiting: String
    let displacement: Displacement?
    private let transfer: ContentTransfer
    /// The path of the private copy of the old content.
    private let copy: String
    /// The file of the release, from which the staged file was made.
    private let template: String
    /// The record of the release in the staged file; nil if it has none.
    private var releaseRow: [Value]?
    /// The path in the plan.
    private let path: String
    /// The ID of the transaction.
    private let id: String
    /// Whether the staged file has another page size than the template.
    private var isRepaged = false
    /// How many seconds the commit waits for readers.
    private let patience: Int

    private var live: LockedDatabase?
    private var source: Connection?
    private var backup: BackupBox?
    /// The result of the transfer from the copy.
    private var carried: ContentTransfer.Carried?
    /// Whether copying pages has begun.
    private var isBegun = false
    private var isEnded = false
    private(set) var marker: HeldMarker?

    init(
        _ effect: Effect, place: String, path: String, id: String, waiting: String, copy: String, template: String,
        transfer: ContentTransfer, displacement: Displacement, patience: Int
    ) {
        (self.effect, self.place, self.path, self.id) = (effect, place, path, id)
        (self.waiting, self.copy, self.template) = (waiting, copy, template)
        (self.transfer, self.displacement) = (transfer, displacement)
        self.patience = patience
    }

    // MARK: without a lock

    /// Copies the old content, and carries its rows over into the staged file.
    func examine() throws {
        // Another attempt begins with the staged file as it was.
        if live != nil { try restoreStagedFile() }
        try discard()
        let live = try self.live ?? LockedDatabase(place)
        self.live = live
        try live.naming { try live.copyContent(to: copy, patience: .seconds(patience)) }
        let old = try openCopy(copy)
        try prepareStagedFile(pageSize: live.requiredPageSize, old)
        if isRepaged { try Files.copy(waiting, to: repaged, mode: 0o600) }
        try carry(from: old)
        try old.close()
        // Under the lock, only the name has to be synced.
        if let displacement, displacement.isKept { try Files.syncFile(displacement.kept(of: copy)) }
    }

    func rehearse() throws {
        try discard()
        try NonInvasiveReader.copy(place, to: copy)
        let old = try openCopy(copy)
        try prepareStagedFile(pageSize: nil, old)
        try carry(from: old)
        try old.close()
        try source?.close()
        source = nil
    }

    /// The copy of a staged file that has another page size than the template.
    private var repaged: String { "\(copy).paged" }
    /// The shipped content, with the page size of the staged file.
    private var pristine: String { isRepaged ? repaged : template }

    /// Removes the files that an earlier attempt left.
    private func discard() throws {
        try Files.ensureDirectory(Files.directory(of: copy), mode: 0o700)
        for path in [copy, repaged] + (displacement?.rows.map { [$0] } ?? []) {
            try ([""] + SidecarSuffixes.all).forEach { try Files.remove(path + $0) }
        }
    }

    /// Gives the staged file the page size of a file in WAL mode, which SQLite cannot change.
    private func prepareStagedFile(pageSize: Int?, _ old: Connection) throws {
        let staged = try Connection(path: waiting, access: .readWrite)
        try requireSameEncoding(old, staged)
        releaseRow = nil
        if try staged.int(ReleaseMarker.isThere) == 1 { releaseRow = try staged.query(ReleaseMarker.row).first }
        isRepaged = false
        if let size = pageSize, try size != staged.header().pageSize {
            let paged = "\(waiting).paged"
            try Files.remove(paged)
            try staged.run("PRAGMA page_size = \(size)")
            _ = try staged.query("VACUUM INTO ?1", [.text(paged)])
            try staged.close()
            try Files.seal(paged, mode: 0o644)
            try Files.rename(paged, to: waiting)
            isRepaged = true
            return
        }
        try staged.close()
    }

    /// Throws if the new content has another text encoding than a copy of the old: an open connection keeps the encoding of the
    /// first schema that it read. A database in WAL mode may have its first pages, and so its encoding, only in the -wal.
    private func requireSameEncoding(_ old: Connection, _ new: Connection) throws {
        try WritableFile.requireSameEncoding(
            place, old.header().encoding?.description, new.header().encoding?.description)
    }

    private func carry(from old: Connection) throws {
        let source = try self.source ?? openSource()
        self.source = source
        carried = nil
        do {
            carried = try source.transaction(.immediate) {
                try TransactionMarker.write(id, to: source)
                return try transfer.run(from: old, to: source, displacement)
            }
        } catch let error as MoultError where error.code == .databaseCorrupt && transfer.isForeign {
            // No table of the old file can be read, and the whole file is kept.
            if transfer.mustCarry { throw MoultError.unreadable(transfer.database, nil, error) }
            displacement?.prove([], hasContentLeft: true)
            try source.transaction(.immediate) { try TransactionMarker.write(id, to: source) }
        }
    }

    /// The staged file needs no syncs: recovery stages it again.
    private func openSource() throws -> Connection {
        let source = try Connection(path: waiting, access: .readWrite)
        try source.execute("PRAGMA synchronous = OFF")
        return source
    }

    // MARK: under the lock

    /// Takes the write lock; throws `.inUse` if that takes longer than a turn.
    func acquire() throws {
        guard let live, let source else { return }
        try live.lock(from: source)
        // An app has set WAL mode since the staged file was prepared. The next attempt gives that file the right page size.
        guard let size = try live.requiredPageSize, try size != source.header().pageSize else { return }
        try live.unlock()
        self.source = nil
        try source.close()
        try examine()
        throw inUse()
    }

    func unlock() throws { try live?.unlock() }

    /// Brings the staged file and the kept copy up to date with what apps have written since `examine`.
    func hold() throws {
        guard let live else { return }
        try WritableFile.requireSoleName(place)
        try live.requirePlace()
        marker = HeldMarker(path: path, transaction: try live.marker())
        if try live.hasChanged() { try carryAgain(live) }
        if displacement?.isKept == true { try displacement?.keep(copy: copy) }
        guard let source else { return }
        backup = try live.backup(from: source)
        // The space is needed for the pages.
        try discard()
    }

    /// Carries over what apps have changed since the copy was made.
    private func carryAgain(_ live: LockedDatabase) throws {
        guard let source else { return }
        let present = "\(copy).present"
        try Files.remove(present)
        try live.copyLockedContent(to: present)
        let (before, now, first) = (try openCopy(copy), try openCopy(present), try openCopy(pristine))
        try requireSameEncoding(now, source)
        if try update(source, from: before, to: now, first) {
        } else {
            try restore(source, from: first)
            try carry(from: now)
        }
        for connection in [before, now, first] { try connection.close() }
        try Files.rename(present, to: copy)
    }

    /// Removes all carried rows from the staged file.
    private func restoreStagedFile() throws {
        let source = try self.source ?? openSource()
        let first = try openCopy(pristine)
        try restore(source, from: first)
        try first.close()
        try source.close()
        self.source = nil
    }

    private func restore(_ source: Connection, from first: Connection) throws {
        try first.backup(to: source)
        guard let releaseRow, !isRepaged else { return }
        try source.transaction(.immediate) {
            try source.execute(ReleaseMarker.create)
            _ = try source.query(ReleaseMarker.insert, releaseRow)
        }
    }

    /// Carries over only the difference; returns false if that is impossible, and then changes nothing.
    private func update(
        _ source: Connection, from before: Connection, to now: Connection, _ pristine: Connection
    ) throws -> Bool {
        guard let carried else { return false }
        struct Impossible: Error {}
        do {
            self.carried = try source.transaction(.immediate) {
                let updated = try ContentTransfer.update(
                    carried, from: before, to: now, in: source, pristine: pristine, displacement)
                guard let updated else { throw Impossible() }
                return updated
            }
            return true
        } catch is Impossible { return false }
    }

    /// Opens a private copy. Errors name the database.
    private func openCopy(_ path: String) throws -> Connection {
        try Connection(path: path, access: .immutable, shownAs: place)
    }

    /// Copies all pages but the last, so that running out of space is detected before the decision.
    func copyPages() throws {
        guard let backup, let live else { return }
        isBegun = true
        // Counts the pages, and copies none.
        if case .blocked = try backup.step(0) { throw inUse() }
        while backup.remaining > 1 {
            if case .blocked = try backup.step(min(backup.remaining - 1, 4096)) { throw inUse() }
        }
        try live.flush()
    }

    func commit() throws -> Bool {
        guard let backup, let live else { return false }
        try live.waitForTurn(.seconds(patience)) { try backup.step(-1) }
        try backup.finish()
        self.backup = nil
        isEnded = true
        try live.checkpoint()
        return true
    }

    func endFailedCommit(_ error: any Error) throws {
        guard isBegun, !isEnded else { return }
        // Ends the backup's transaction.
        backup?.abandon()
        backup = nil
        try live?.endFailedCommit(error)
    }

    func finish() throws { try release() }

    func release() throws {
        let isUnfinished = backup != nil && isBegun
        backup?.abandon()
        backup = nil
        try live?.unlock()
        try source?.close()
        source = nil
        // Otherwise the -wal would stay as large as the release.
        if isUnfinished { try live?.checkpoint() }
        try live?.close()
        live = nil
    }

    private func inUse() -> MoultError { LockedDatabase.inUse(place, cause: nil) }
}
