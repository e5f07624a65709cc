internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Gives a file of an app other content, in place, by one transaction of SQLite. The file keeps its inode, owner, mode, journal
/// mode and encoding; connections of apps stay valid, and see the new content at their next transaction.
///
/// `copyOld` and `prepare` need no lock. `write` locks the file, brings the copy and the carried rows up to date, has the old
/// content kept, and copies the pages. Up to the commit, a failure or a crash leaves the old content.
final class FileRewrite {
    private let file: ReplacedFile
    private let work: String
    private let watcher: Watcher
    /// Nil in a dry run, which opens the file only for reading.
    private let live: LockedDatabase?
    /// The private copy of the old content.
    let copy: String
    /// The file with the new content, in the directory of this command or in a set.
    private(set) var new = ""
    private var isStaged = false
    /// Whether the file already has the new content; known after `prepare`.
    private(set) var isNeedless = false
    /// Whether the file has the new content now.
    private var isWritten = false
    private var source: Connection?
    private var transfer = RowTransfer(rules: [], rejects: RejectTable(label: "", isDiscarded: true))
    private var outcomes: [TableOutcome] = []

    private var path: String { file.path }
    private var pristine: String { "\(work)/pristine.db" }
    private var empty: String { "\(work)/empty.db" }
    /// How long to wait for the transactions of programs.
    private static let patience = Duration.seconds(10)

    init(_ file: ReplacedFile, in work: String, isDry: Bool, _ watcher: Watcher) throws {
        (self.file, self.work, self.watcher, copy) = (file, work, watcher, "\(work)/old.db")
        live = isDry ? nil : try LockedDatabase(file.path)
        try readingOld { try live?.tolerateDamage() }
    }

    // MARK: without a lock

    /// Copies the old content.
    func copyOld() throws {
        try readingOld {
            if try makeEmptyCopy() { return }
            guard let live else { return try NonInvasiveReader.copy(path, to: copy) }
            try live.naming { try live.copyContent(to: copy, patience: Self.patience) }
        }
        try finishCopy()
    }

    /// Creates an empty copy of a file of 0 bytes, of which SQLite would make a copy with one page. Returns false for any other file.
    private func makeEmptyCopy() throws -> Bool {
        let size = try Files.facts(path)?.size
        if size == 1 {
            throw MoultError(.databaseCorrupt, what: "\(path) is not a SQLite database", why: "it has 1 byte")
        }
        guard size == 0 else { return false }
        try Files.writeNew([], to: copy, mode: 0o600)
        return true
    }

    private func finishCopy() throws {
        // A copy in WAL mode would switch the file to that mode when it is restored.
        try DatabaseHeader.setRollbackMode(ofCopy: copy)
        try Files.syncFile(copy)
    }

    private func readingOld(_ body: () throws -> Void) throws {
        do { try body() } catch let error as MoultError where error.code == .databaseCorrupt {
            throw file.unreadable(error)
        }
    }

    /// Prepares the new content: gives it the page size that the file requires, and carries the rows over. `isStaged` means that it
    /// may be changed.
    func prepare(_ new: String, isStaged: Bool, carrying rules: [RowRule] = []) throws {
        (self.new, self.isStaged) = (new, isStaged)
        if try Files.facts(new)?.size == 0 { try makeEmptyDatabase() }
        try requireSameEncoding()
        try repage()
        if !rules.isEmpty {
            try Files.copy(self.new, to: pristine, mode: 0o600)
            transfer = RowTransfer(rules: rules, rejects: transfer.rejects)
            let (old, source) = (try openCopy(copy), try openSource())
            self.source = source
            try watcher.stoppingStatements { try carry(from: old) }
            for connection in [old, source] { try connection.close() }
        }
        // Files that this process has open are not compared.
        isNeedless = try DatabaseHeader.haveSameContent(copy, self.new)
        source = try openSource()
    }

    private func openSource() throws -> Connection {
        try isStaged ? Connection(unsynced: new) : Connection(path: new, access: .immutable)
    }

    /// An empty database has one page, which is cut off after the commit.
    private func makeEmptyDatabase() throws {
        (new, isStaged) = (empty, true)
        let empty = try Connection(path: new, access: .readWriteCreate)
        try empty.execute("PRAGMA user_version = 1; PRAGMA user_version = 0")
        try empty.close()
    }

    private func encoding(_ file: String) throws -> String? {
        guard let facts = try Files.facts(file), facts.size > 0 else { return nil }
        return try Connection.encoding(ofFileAt: file)?.description
    }

    private func requireSameEncoding() throws {
        do {
            try WritableFile.requireSameEncoding(
                path, encoding(copy), encoding(new), of: "the new content", file: file.newName ?? "NEW.db")
        } catch let error as MoultError where error.code == .encoding {
            throw file.refusal(error.why ?? error.what, error.now ?? "", cause: error)
        }
    }

    /// The page size of a file in WAL mode, which SQLite cannot change; otherwise nil.
    private var requiredPageSize: Int? {
        get throws {
            if let live { return try live.requiredPageSize }
            if try Files.facts(path)?.size == 0 { return nil }
            let header = try Connection.header(ofFileAt: path)
            return header.isWAL ? header.pageSize : nil
        }
    }

    private func repage() throws {
        guard let size = try requiredPageSize, try size != Connection.header(ofFileAt: new).pageSize else { return }
        let paged = "\(work)/paged.db"
        let connection = try Connection(path: new, access: .readOnly)
        try connection.write(to: paged, pageSize: size)
        try connection.close()
        if isStaged { try Files.remove(new) }
        (new, isStaged) = (paged, true)
    }

    private func carry(from old: Connection) throws {
        guard let source else { return }
        outcomes = try source.transaction(.immediate) { try transfer.run(from: old, to: source) }
    }

    private func openCopy(_ copy: String) throws -> Connection {
        try Connection(path: copy, access: .immutable, shownAs: path)
    }

    /// What becomes of the rows to preserve. A row that does not fit is only in the kept copy.
    var fates: [RowFate] {
        outcomes.map {
            RowFate(
                table: $0.table, carried: $0.carried, kept: $0.rejected + $0.unplaced + $0.incomplete,
                incomplete: $0.incomplete, displaced: $0.shippedLosers)
        }.filter { !$0.isEmpty }
    }

    // MARK: under the lock

    /// Writes the new content. `keep` keeps the copy of the old content, which is complete, before the file changes; `giveUp` is called
    /// if nothing was changed after that. Content that `isExpendable` accepts under the lock is not kept.
    func write(
        keep: (_ copy: String) throws -> Void, giveUp: () throws -> Void,
        isExpendable: (Connection) throws -> Bool = { _ in false }
    ) throws {
        guard let live, let source else { return }
        try lock(live, source)
        var (isKept, isCommitting) = (false, false)
        var backup: Backup?
        do {
            try WritableFile.requireSoleName(path)
            try live.requirePlace()
            if try live.hasDamagedSchema || !isExpendable(live.lockedReader) {
                if try live.hasChanged() { try update(live, source) }
                try requireSameEncoding()
                try keep(copy)
                isKept = true
            }
            let pages = try live.backup(from: source)
            backup = pages
            try live.copyPages(pages)
            isCommitting = true
            try live.commit(pages, patience: Self.patience)
        } catch {
            backup?.abandon()
            if try Files.facts(copy)?.size == 0 { try live.truncateEmptyFile() }
            try live.unlock()
            if backup != nil {
                do { try live.endFailedWrite(error, isCommitting: isCommitting) } catch let failure where isCommitting {
                    throw unknown(error, failure)
                }
            }
            // In the commit, only the file shows whether it took effect, so the copy stays.
            if isKept, !isCommitting { try giveUp() }
            throw error
        }
        end(live, source)
    }

    private func lock(_ live: LockedDatabase, _ source: Connection) throws {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            do {
                try live.lock(from: source)
                break
            } catch let error as MoultError where error.outcome == .busy && ContinuousClock.now < deadline {
                try watcher.stopIfAsked()
            }
        }
        // An app has set WAL mode in the meantime, and the next attempt changes the page size.
        if try live.accepts(source) { return }
        try live.unlock()
        throw LockedDatabase.inUse(path, cause: nil)
    }

    /// Brings the copy and the carried rows up to date with what apps have written since.
    private func update(_ live: LockedDatabase, _ source: Connection) throws {
        if !transfer.rules.isEmpty {
            let (before, first) = (try openCopy(copy), try openCopy(pristine))
            let update = RowUpdate(transfer, after: outcomes)
            if let updated = try source.changing({
                try update.run(from: before, to: live.lockedReader, in: source, pristine: first)
            }) {
                outcomes = updated
            } else {
                try first.backup(to: source)
                try carry(from: live.lockedReader)
            }
            try before.close()
            try first.close()
        }
        // To lock an empty file, SQLite writes a page without content.
        if try Files.facts(copy)?.size == 0, try live.lockedReader.hasNoContent { return }
        try Files.remove(copy)
        try live.copyLockedContent(to: copy)
        try finishCopy()
    }

    private func end(_ live: LockedDatabase, _ source: Connection) {
        isWritten = true
        self.source = nil
        afterCommit { try source.close() }
        // The space is needed for the checkpoint.
        if isStaged { afterCommit { try Files.remove(new) } }
        afterCommit {
            try live.checkpoint()
            if new == empty { try live.truncateEmptyFile() }
            try live.unlock()
            try Files.syncDirectory(Files.directory(of: path))
        }
    }

    /// Ends the write of an interrupted command, whose pages may still be in the `-wal`.
    func endInterrupted() {
        guard let live else { return }
        isWritten = true
        afterCommit { try live.checkpoint() }
    }

    /// Does what comes after the commit, where an error no longer changes the result.
    func afterCommit(_ body: () throws -> Void) {
        do { try body() } catch { watcher.tell(.warning("after the new content was committed: \(error)")) }
    }

    /// Closes the file. `isWritten` tells whether an error here no longer changes the result.
    func close() throws {
        let (source, live) = (self.source, self.live)
        self.source = nil
        func close() throws {
            try source?.close()
            try live?.close()
        }
        if isWritten { afterCommit(close) } else { try close() }
    }

    /// A `-wal` whose sync failed has the complete transaction, which the next program may commit.
    private func unknown(_ error: any Error, _ failure: any Error) -> MoultError {
        let repeated =
            file.newName.map { ["moult", "replace", file.name, $0] } ?? ["moult", "replace", "--undo", file.name]
        return MoultError(
            .stuck, .stuck, what: "\(file.name) has its old or its new content", why: "its commit failed: \(failure)",
            now: "Both are kept. When the disk works again, repeat the command: \(run: repeated)", cause: error)
    }
}
