internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension Plan {
    /// The space for directories, the journal and the file system's own blocks.
    private static let overhead = 256 << 10

    /// Computes the space that the update needs on the store's file system; throws if it is not there.
    mutating func addNeeds(_ manifest: Manifest, bytes: Int, in store: StoreSnapshot) throws {
        guard changesStore else { return }
        let layout = store.layout
        needs = try effects.reduce(0) { try $0 + $1.stagedBytes + Self.written($1, layout) } + bytes
        needs += missing
        for reuse in reuse {
            // A hard link or shared blocks need no space; the intermediate results of patches do for a while.
            if reuse.isLinked(in: manifest) { needs -= manifest.content(of: reuse.member)?.size ?? 0 }
            needs += reuse.patches.dropLast().reduce(0) { $0 + $1.result.size }
        }
        let free = try Files.freeSpace(layout.root)
        if needs + Self.overhead > free {
            throw MoultError(
                .space, .refused, what: "not enough space in \(layout.root)",
                why:
                    "the update needs \(ByteCount(needs)) and a reserve of \(ByteCount(Self.overhead)), but only \(ByteCount(free)) is free",
                now: "Free at least \(ByteCount(needs + Self.overhead - free)) on the file system of \(layout.root)"
                    + (purpose != .rollback && Self.canClean(store)
                        ? ", or remove kept generations with: \(moult: "clean", "--keep", "1")" : ", then try again."))
        }
    }

    /// Returns whether `moult clean --keep 1` would remove a generation. A rollback needs the generation that it returns to.
    private static func canClean(_ store: StoreSnapshot) -> Bool {
        // If the generations cannot be examined, the error does without this advice.
        let report = try? Collector(layout: store.layout, settings: store.settings).collect(keep: 1, dry: true)
        return report?.removed.isEmpty == false
    }

    /// Returns the space that a change of a database in place needs, apart from its staged file.
    private static func written(_ effect: Effect, _ layout: StoreLayout) throws -> Int {
        func size(_ path: String) throws -> Int {
            try [path, "\(path)-wal"].reduce(0) { try $0 + (Files.factsThroughLinks(layout.file($1))?.size ?? 0) }
        }
        switch effect.change {
        case .migrate(let path, _, _, _, _):
            // A trial runs on one copy, changed content is kept in another, and every page of the file itself may be written.
            return try 3 * size(path)
        case .replace(let content):
            let (path, new) = (content.path, content.size)
            let old = try size(path)
            // The content of a set is also kept until the end, for recovery.
            let restored = content.reason == .restored ? new : 0
            // A copy of the old content, which may be kept, and the pages in the journal or the `-wal`. In WAL mode, these are the
            // new ones.
            let isWAL = try Files.factsThroughLinks(layout.file(path + "-wal")) != nil
            return old + (isWAL ? new : old) + max(0, new - old) + restored
        default: return 0
        }
    }
}
