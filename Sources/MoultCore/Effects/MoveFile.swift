internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Moves a writable database to the path that the release has for it: one rename of the main file, after draining.
final class MoveFile: WritableEffect {
    let effect: Effect
    let place: String
    private let from: String
    /// The file while no other process has it; shared with the exchange that gives it new content.
    private let old: DrainedFile
    private let isHeldByExchange: Bool
    /// The file by which recovery tells done from not done.
    private let inode: UInt64?

    init(_ effect: Effect, from: String, to place: String, exchange: Exchange?, inode: UInt64?) {
        (self.effect, self.from, self.place, self.inode) = (effect, from, place, inode)
        old = exchange?.old ?? DrainedFile(from)
        isHeldByExchange = exchange != nil
    }

    private var key: String { "moved/\(from)" }

    var facts: [String: UInt64] {
        get throws { [key: try Files.facts(from)?.inode ?? inode ?? 0] }
    }

    private var isDone: Bool { get throws { try Files.facts(from) == nil && Files.facts(place) != nil } }

    func hold() throws {
        if try isHeldByExchange || isDone { return }
        try old.hold(read: { _ in })
    }

    func perform() throws {
        if try isDone { return }
        guard try old.isHeld(), try Files.renameIfFree(from, to: place) else { throw old.inUse() }
        try Files.syncDirectory(Files.directory(of: place))
        try Files.syncDirectory(Files.directory(of: from))
        if !isHeldByExchange { old.release() }
    }

    func revert() throws {
        // Only the file that was moved goes back; an app may have made another one at the old path meanwhile.
        guard try Files.facts(from) == nil, let facts = try Files.facts(place), inode.map({ $0 == facts.inode }) ?? true
        else { return try release() }
        _ = try Files.renameIfFree(place, to: from)
        try Files.syncDirectory(Files.directory(of: from))
        try release()
    }

    func isCommitted() throws -> Bool { false }

    func release() throws { if !isHeldByExchange { old.release() } }
}
