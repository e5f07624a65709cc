internal import Glibc
internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Puts new content in the place of a drained living file by one exchange of names.
///
/// An exclusive SQLite lock is not enough for that: an idle connection in rollback mode holds no lock, and would mix
/// pages of both files afterwards. A lease of the kernel on the old file is granted only if nobody has it open.
final class Exchange {
    let path: String
    let waiting: String
    let carrier: RowCarrier

    /// Locks the new content until the update has been verified: so an undo overwrites nobody's rows.
    private var staged: Connection?
    private var lease: WriteLease?
    /// By which change the old content is known as the one whose rows were carried over.
    private var drained: UInt32 = 0
    private(set) var isExchanged = false

    private static let mostAttempts = 5
    /// How long programs that open the file for a moment are waited for.
    private static let patience = Duration.seconds(2)

    init(path: String, waiting: String, carrier: RowCarrier) {
        (self.path, self.waiting, self.carrier) = (path, waiting, carrier)
    }

    /// Takes the old file out of use and carries its rows over: the last thing before the decision, because the lease
    /// is for moments only.
    func engage() throws {
        for _ in 0..<Self.mostAttempts {
            let staged = try Connection(path: waiting, access: .readWrite)
            try staged.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
            let counter = try drain(into: staged)
            let lease = try takeLease()
            if try isDrained(lease, counter) {
                try staged.execute("COMMIT")
                (self.staged, self.lease, drained) = (staged, lease, counter)
                return
            }
            // Somebody wrote between our lock and our lease: once more, with his rows.
            try staged.execute("ROLLBACK")
            try staged.close()
        }
        throw inUse()
    }

    private func takeLease() throws -> WriteLease {
        guard let lease = try WriteLease.take(path, patience: Self.patience) else { throw inUse() }
        return lease
    }

    private func isDrained(_ lease: WriteLease, _ counter: UInt32) throws -> Bool {
        let header = try lease.reading { try DatabaseHeader(of: $0) }
        return try header.changeCounter == counter && Sidecars.of(path).isEmpty
    }

    /// By which change the new content is known as untouched.
    func counter() throws -> UInt64 { try UInt64(staged?.header().changeCounter ?? 0) }

    /// Brings the old file into one piece under an exclusive lock, and says by which change it is known again.
    private func drain(into staged: Connection) throws -> UInt32 {
        try LivingRest(path: path).restore()
        let old = try Connection(path: path, access: .readWrite)
        try old.execute("PRAGMA locking_mode = EXCLUSIVE")
        do {
            if try old.header().isWAL {
                guard try !old.checkpoint(.truncate).isBusy,
                    try old.scalar("PRAGMA journal_mode = DELETE") == .text("delete")
                else { throw inUse() }
            }
            try old.execute("BEGIN EXCLUSIVE")
        } catch let error as MoultError {
            try old.close()
            guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code else { throw error }
            throw inUse()
        }
        try carrier.carry(from: old, to: staged)
        let counter = try old.header().changeCounter
        try old.execute("COMMIT")
        try old.close()
        return counter
    }

    /// The exchange itself; it holds only if nobody has asked for the old file since the lease was taken.
    func perform() throws {
        for _ in 0..<Self.mostAttempts {
            guard let lease else { return }
            try Files.exchange(waiting, path)
            isExchanged = true
            if try lease.isWhole() {
                try Files.syncDirectory(Files.directory(of: path))
                try Files.syncDirectory(Files.directory(of: waiting))
                self.lease = nil
                return
            }
            // Whoever asked gets the old file, and will have it open beside the new one: so it goes back first. If he
            // only reads, the rows that were carried over are still all there are, and it is tried again.
            try Files.exchange(waiting, path)
            isExchanged = false
            self.lease = nil
            let again = try takeLease()
            guard try isDrained(again, drained) else { break }
            self.lease = again
        }
        throw inUse()
    }

    /// Exactly back: the new content is locked by us, so nobody has written to it.
    func revert() throws {
        guard isExchanged else { return release() }
        try Files.exchange(waiting, path)
        isExchanged = false
        try Files.syncDirectory(Files.directory(of: path))
        release()
    }

    private func release() {
        lease = nil
        staged = nil
    }

    /// Whether the content that lies at `waiting` is still as it was when it was staged.
    func isUntouched(counter: UInt64?) throws -> Bool {
        let connection = try Connection(path: waiting, access: .readWrite)
        let now = try UInt64(connection.header().changeCounter)
        try connection.close()
        return now == counter
    }

    /// Lets the app in.
    func finish() throws {
        try staged?.close()
        staged = nil
    }

    private func inUse() -> MoultError {
        // Whoever holds it may be somebody else's process, of which we may not know.
        let holders = (try? OpenFiles.holders(of: [path]).map(\.description)) ?? []
        return MoultError(
            .inUse, .busy, what: "\(path) is in use",
            why: holders.isEmpty ? "a process has it open" : "\(holders.joined(separator: ", ")) has it open",
            now: "Stop that program, or let the release replace it live: \"replace\": \"live\".")
    }
}
