internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Replaces a drained file with new content by a single exchange of names.
final class Exchange: WritableEffect {
    let effect: Effect
    let place: String
    /// The path of the database while it is held; differs from `place` if the same update moves the database.
    private let held: String
    let waiting: String
    let displacement: Displacement?
    private let transfer: ContentTransfer
    /// The change counter of the new content, as recorded with the decision; nil before.
    private let counter: UInt64?
    /// The inode of the old file, as recorded with the decision; nil before.
    private let replaced: UInt64?
    /// Returns whether the release's content is in place.
    private let isDone: () throws -> Bool

    /// The old file, held so that no other process has it open.
    let old: DrainedFile
    /// The connection that locks the new content until the update has been verified, so that no app writes rows that an undo
    /// would lose.
    private var staged: Connection?
    private var isExchanged = false

    private static let maxAttempts = 5

    init(
        _ effect: Effect, place: String, held: String, waiting: String, transfer: ContentTransfer,
        displacement: Displacement, counter: UInt64?, replaced: UInt64?, isDone: @escaping () throws -> Bool
    ) {
        (self.effect, self.place, self.held, self.waiting) = (effect, place, held, waiting)
        (self.counter, self.replaced) = (counter, replaced)
        (self.transfer, self.displacement, self.isDone) = (transfer, displacement, isDone)
        old = DrainedFile(held)
    }

    static func key(_ path: String) -> String { "counter/\(path)" }
    /// Returns the key under which the old file's inode is recorded. Recovery uses it to tell whether the exchange was made.
    static func oldKey(_ path: String) -> String { "replaced/\(path)" }

    var facts: [String: UInt64] {
        get throws {
            guard case .replace(let path, _, _, _, _, _, _) = effect.change else { return [:] }
            var facts = [Self.key(path): try UInt64(staged?.header().changeCounter ?? 0)]
            facts[Self.oldKey(path)] = try old.lease == nil ? replaced : Files.facts(held)?.inode
            return facts
        }
    }

    /// Drains the old file and carries its rows over. This is the last action before the decision, because a lease can be held
    /// only briefly.
    func hold() throws {
        do {
            guard try !transfer.isForeignNonDatabase(held) else { return try holdNonDatabase() }
            try old.hold(
                read: { [self] connection in
                    let staged = try lockStaged()
                    self.staged = staged
                    try transfer.run(from: connection, to: staged, displacement)
                }, discard: { [self] in try discardStaged() })
        } catch let error as MoultError where error.code == .databaseCorrupt && transfer.isForeign {
            // No table of the old file can be read.
            if transfer.mustCarry { throw MoultError.unreadable(transfer.database, nil, error) }
            if staged != nil { try discardStaged() }
            return try holdNonDatabase()
        }
        try completeHold()
    }

    /// Holds a file that was there before moult and has no rows to carry over; the same update keeps it as a generation.
    private func holdNonDatabase() throws {
        try old.holdPlainFile()
        displacement?.proveAdopted([])
        try completeHold()
    }

    private func completeHold() throws {
        if staged == nil { staged = try lockStaged() }
        try staged?.execute("COMMIT")
        try Files.copyAttributes(from: held, to: waiting)
        if displacement?.isKept == true { try displacement?.keepFile(old.lease) }
    }

    private func lockStaged() throws -> Connection {
        let staged = try Connection(path: waiting, access: .readWrite)
        try staged.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
        return staged
    }

    private func discardStaged() throws {
        try staged?.execute("ROLLBACK")
        try staged?.close()
        staged = nil
    }

    /// Exchanges the names of the two files. If another process opens the old file meanwhile, tries again, or throws if that
    /// process wrote to it.
    func perform() throws {
        guard old.lease != nil else { return }
        for _ in 0..<Self.maxAttempts {
            try Files.exchange(waiting, place)
            isExchanged = true
            try old.requireFile(at: waiting) {
                try Files.exchange(waiting, place)
                isExchanged = false
            }
            if try old.isHeld() {
                try Files.syncDirectory(Files.directory(of: place))
                try Files.syncDirectory(Files.directory(of: waiting))
                old.release()
                return
            }
            // The process that is opening the path must get the old file, so the exchange is undone first. If the process only
            // reads, the rows carried over are still complete, and the exchange is tried again.
            try Files.exchange(waiting, place)
            isExchanged = false
            guard try old.holdAgain() else { break }
        }
        throw old.inUse()
    }

    func revert() throws {
        if isExchanged {
            // An exact undo: this process has locked the new content, so no other process has written to it.
            try Files.exchange(waiting, place)
            isExchanged = false
            try Files.syncDirectory(Files.directory(of: place))
        } else if staged == nil {
            try revertAfterCrash()
        }
        try release()
    }

    /// Undoes an exchange made by a process that crashed. If an app has written to the new content since, that content is kept
    /// in quarantine.
    private func revertAfterCrash() throws {
        guard try isDone(), try Files.facts(waiting) != nil else { return }
        let isUntouched = try isUntouched()
        // This comes before the lease, because comparing the file with a set from before the crash opens the file, which would
        // break the lease. The set gets a hard link to the file, so the set includes the content that draining moves from the
        // WAL into the file.
        if !isUntouched {
            displacement?.proveUndone()
            try displacement?.keepFile()
        }
        let new = DrainedFile(place)
        try new.hold(read: { _ in })
        try Files.exchange(waiting, place)
        try new.requireFile(at: waiting) { try Files.exchange(waiting, place) }
        guard try new.isHeld() else {
            try Files.exchange(waiting, place)
            throw new.inUse()
        }
        // The set with the old content is removed at the end of the undo, because the old content is in place again.
        if !isUntouched { try displacement?.commit() }
        try Files.syncDirectory(Files.directory(of: place))
    }

    /// Returns whether the new content is unchanged since the decision.
    private func isUntouched() throws -> Bool {
        guard let counter else { return false }
        let connection = try Connection(path: place, access: .readWrite)
        let now = try UInt64(connection.header().changeCounter)
        try connection.close()
        return now == counter
    }

    /// Returns whether the exchange was made. After this, `finish` lets apps open the file, and an undo could lose their
    /// writes.
    func commit() throws -> Bool { isExchanged }

    func isCommitted(despite error: any Error) throws -> Bool { isExchanged }

    func finish() throws {
        try staged?.close()
        staged = nil
    }

    func release() throws {
        old.release()
        if let staged, try staged.isInTransaction { try staged.execute("ROLLBACK") }
        staged = nil
    }
}
