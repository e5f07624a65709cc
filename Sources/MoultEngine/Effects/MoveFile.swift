internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Moves a writable database to its path in the new release: one rename of the main file, after draining.
final class MoveFile: WritableEffect {
    let effect: Effect
    let place: String
    private let from: String
    /// The file, held so that no other process has it open; shared with the exchange that gives it new content.
    private let old: DrainedFile
    private let isHeldByExchange: Bool
    /// The inode by which recovery tells whether the move was made.
    private let inode: UInt64?
    /// Keeps a file that an app has created at the old path in quarantine.
    private let keepNewcomer: () throws -> Void

    init(
        _ effect: Effect, from: String, to place: String, exchange: Exchange?, inode: UInt64?,
        keepNewcomer: @escaping () throws -> Void
    ) {
        (self.effect, self.from, self.place, self.inode) = (effect, from, place, inode)
        self.keepNewcomer = keepNewcomer
        old = exchange?.old ?? DrainedFile(from)
        isHeldByExchange = exchange != nil
    }

    /// Returns the key under which the inode is recorded.
    static func key(_ from: String) -> String { "moved/\(from)" }

    var facts: [String: UInt64] {
        get throws { [Self.key(from): try inode ?? Files.facts(from)?.inode ?? 0] }
    }

    private var isDone: Bool { get throws { try Self.isDone(from: from, to: place, inode: inode) } }

    /// Returns whether the file is at its new path. If the inode was recorded, a different file at the old path belongs to the
    /// app.
    static func isDone(from: String, to place: String, inode: UInt64?) throws -> Bool {
        guard try Files.facts(place) != nil else { return false }
        guard let old = try Files.facts(from) else { return true }
        return inode.map { $0 != 0 && $0 != old.inode } ?? false
    }

    func hold() throws {
        if try isDone { return }
        try requireFree(place)
        if !isHeldByExchange { try old.hold(read: { _ in }) }
    }

    func perform() throws {
        if try isDone { return }
        guard try old.isHeld() else { throw old.inUse() }
        try requireFree(place)
        guard try Files.renameIfFree(from, to: place) else { throw occupied(place, by: place) }
        try Files.syncDirectory(Files.directory(of: place))
        try Files.syncDirectory(Files.directory(of: from))
        if !isHeldByExchange { old.release() }
    }

    func revert() throws {
        try release()
        old.release()
        // Only the moved file goes back. In a copied store it is known only by its path.
        let newcomer = try Files.facts(from)
        guard let facts = try Files.facts(place), inode.map({ $0 == facts.inode }) ?? true else { return }
        if inode == nil, newcomer != nil {
            throw MoultError(
                .occupied, .refused, what: "\(place) cannot be moved back to \(from)",
                why: "this store is a copy, so its records do not show which of the two files is the database",
                now:
                    "Find out which of them is the database, and move the other one away. If it is the file at the old path: "
                    + Files.commandToMoveAway(from), cause: Errno.exists)
        }
        // An app that did not find its database may have created another one in the meantime. This check comes before anything is
        // drained, because draining changes the journal mode.
        if newcomer?.kind == .file, try WriteLease.take(from) == nil { throw DrainedFile(from).inUse() }
        // An app may have opened the file at the new path, and have rows in a WAL there.
        let isWAL = try Connection.isWAL(ofFileAt: place)
        let moved = DrainedFile(place)
        try moved.hold(read: { _ in })
        if newcomer?.kind == .file { try keepNewcomer() }
        do { try requireFree(from) } catch {
            moved.release()
            try JournalModeRestore(path: place, wasWAL: isWAL).restore()
            throw error
        }
        guard try Files.renameIfFree(place, to: from) else {
            moved.release()
            try JournalModeRestore(path: place, wasWAL: isWAL).restore()
            throw occupied(from, by: from)
        }
        guard try moved.isHeld() else {
            _ = try Files.renameIfFree(from, to: place)
            throw moved.inUse()
        }
        try Files.syncDirectory(Files.directory(of: from))
        moved.release()
        try JournalModeRestore(path: from, wasWAL: isWAL).restore()
    }

    func release() throws { if !isHeldByExchange { old.release() } }

    /// Throws if the file cannot come to a path. SQLite would use a sidecar that is already there with the moved file.
    private func requireFree(_ path: String) throws {
        if try Files.facts(path) != nil { throw occupied(path, by: path) }
        if let sidecar = try Sidecars.of(path).paths.first { throw occupied(path, by: sidecar) }
    }

    private func occupied(_ path: String, by other: String) -> MoultError {
        let isBack = path == from
        return MoultError(
            .occupied, .refused, what: "\(isBack ? place : from) cannot be moved \(isBack ? "back " : "")to \(path)",
            why: other == path
                ? "another file is at that path" : "\(other) belongs to another file, and SQLite would use it",
            now: Files.moveAway(other), cause: Errno.exists)
    }
}
