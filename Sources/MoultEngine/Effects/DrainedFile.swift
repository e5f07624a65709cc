internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// A database file that no process has open and that has no sidecars: ready to be renamed, exchanged or linked.
///
/// An exclusive SQLite lock is not enough: an idle connection in rollback mode holds no lock, and would later mix pages of both
/// files. The kernel grants a lease only if no process has the file open.
final class DrainedFile {
    let path: String
    private(set) var lease: WriteLease?
    /// The file or symlink at the path when the lease was taken.
    private var entry: FileFacts?
    /// The change counter that identifies the content that was read; nil if the file is not a database.
    private var counter: UInt32?

    private static let maxAttempts = 5
    /// How long to wait for programs that open the file briefly.
    private static let patience = Duration.seconds(2)

    init(_ path: String) { self.path = path }

    /// Drains the file and takes the lease, again if another process writes between the lock and the lease.
    func hold() throws {
        for _ in 0..<Self.maxAttempts {
            let counter = try drain()
            let lease = try takeLease()
            (self.counter, self.lease) = (counter, lease)
            try removeLeftovers()
            do { if try isUnchanged() { return } } catch {
                // The caller may hold a damaged file in a different way.
                self.lease = nil
                throw error
            }
            self.lease = nil
        }
        throw inUse()
    }

    /// Takes the lease on a file that is not a database and has no sidecars.
    func holdPlainFile() throws {
        let lease = try takeLease()
        (self.counter, self.lease) = (nil, lease)
        try removeLeftovers()
        let sidecars = try Sidecars.ofFile(path)
        if sidecars.isEmpty { return }
        self.lease = nil
        if try !OpenFiles.holders(of: [path] + sidecars.paths).isEmpty { throw inUse() }
        throw MoultError(
            .occupied, .refused, what: "\(path) cannot be taken over",
            why: "SQLite cannot read it, and \(sidecars.paths.joined(separator: " and ")) may hold part of its content",
            now:
                "Nothing was changed. Start and stop the program that uses the file, so that it writes all content to the "
                + "file, or move the files away.")
    }

    /// Takes the lease on the file that the path names. In a sticky directory, the owner of the file can exchange it for a link at
    /// any moment.
    private func takeLease() throws -> WriteLease {
        let entry = try Files.facts(path)
        if entry?.kind == .link { _ = try Files.resolvedForOpening(path) }
        guard let lease = try WriteLease.take(path, patience: Self.patience), let found = try Files.facts(path),
            try found.isSameFile(entry) && (found.kind == .link || lease.isOfFile(at: path))
        else { throw inUse() }
        self.entry = entry
        return lease
    }

    /// Removes an empty `-wal` or `-journal` and a `-shm`, which SQLite may leave next to a database in rollback mode. They contain no rows,
    /// and no process uses them, because none has the leased file open.
    private func removeLeftovers() throws {
        let sidecars = try Sidecars.ofFile(path)
        let leftovers = [sidecars.wal, sidecars.sharedMemory, sidecars.journal].compactMap(\.self)
        guard sidecars.journal.map({ $0.facts.size == 0 }) ?? true, sidecars.wal.map({ $0.facts.size == 0 }) ?? true,
            leftovers.allSatisfy({ $0.facts.kind == .file })
        else { return }
        for leftover in leftovers { try Files.remove(leftover.path) }
    }

    /// Takes the lease again after another process tried to open the file; returns false if that process wrote to it.
    func holdAgain() throws -> Bool {
        lease = nil
        self.lease = try takeLease()
        return try isUnchanged()
    }

    /// Returns whether no process has tried to open the file since the lease was taken.
    func isHeld() throws -> Bool { try lease?.isUnbroken() ?? false }

    func release() { lease = nil }

    /// Throws unless the held file itself was moved or linked to a path; `undo` reverses that.
    func requireFile(at new: String, undo: () throws -> Void) throws {
        if let entry, try entry.isSameFile(Files.facts(new)) { return }
        try undo()
        throw MoultError(
            .occupied, .refused, what: "\(path) cannot be taken over", why: "another file was put in its place",
            now: "Find out which program replaces it: \(shellLine(["ls", "-l", path]))")
    }

    private func isUnchanged() throws -> Bool {
        guard let lease else { return false }
        guard try Sidecars.ofFile(path).isEmpty else { return false }
        guard let counter else { return true }
        return try lease.reading { try DatabaseHeader(of: $0) }.changeCounter == counter
    }

    /// Merges all content into the main file under an exclusive lock; returns the change counter that identifies that content.
    private func drain() throws -> UInt32 {
        try JournalModeRestore(path: path).restore()
        let connection = try Connection(path: path, access: .readWrite)
        do {
            if try connection.header().isWAL {
                // The checkpoint does not run in exclusive mode, in which SQLite leaves behind a `-shm` from before a crash.
                guard try !connection.checkpoint(.truncate).isBusy,
                    try connection.scalar("PRAGMA journal_mode = DELETE") == .text("delete")
                else { throw inUse() }
            }
            // The lock outlives the transaction that takes it. A read transaction follows, in which records can be compared as
            // bytes. Exclusive mode is set later, because in that mode a connection keeps its read lock while it waits for a
            // writer that itself waits for that lock.
            try connection.execute("BEGIN EXCLUSIVE; PRAGMA locking_mode = EXCLUSIVE; COMMIT; BEGIN")
        } catch let error as MoultError {
            try connection.close()
            guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code else { throw error }
            throw inUse()
        }
        let counter = try connection.header().changeCounter
        // Nothing was written, and SQLite would refuse to commit after a statement that found damage, even one that only read.
        try connection.execute("ROLLBACK")
        try connection.close()
        return counter
    }

    func inUse() -> MoultError { InUse.error(path, advice: "Stop that program, and try again.") }
}

/// The error for a database that another process is using.
enum InUse {
    static func error(_ path: String, advice: String, cause: (any Error)? = nil) -> MoultError {
        // Only root can see which files the processes of other users have open.
        let users = try? OpenFiles.users(of: [path] + Sidecars.of(path).paths)
        return MoultError(
            .inUse, .busy, what: "\(path) is in use",
            why: users ?? "a process has it open or locked",
            now: advice, cause: cause)
    }
}
