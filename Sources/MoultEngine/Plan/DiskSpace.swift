internal import MoultBasics
internal import MoultFiles
internal import MoultStore
internal import StepKit

/// Computes the space that an update needs on the store's file system, before anything starts.
enum DiskSpace {
    /// The space for directories, the journal and the file system's own blocks.
    private static let overhead = 256 << 10

    static func need(for plan: inout Plan, _ manifest: Manifest, bytes: Int, in layout: StoreLayout) throws {
        guard plan.changesStore else { return }
        plan.needs = try plan.effects.reduce(0) { try $0 + $1.stagedBytes + migrated($1, layout) } + bytes
        plan.needs += plan.missing
        for reuse in plan.reuse {
            // A hard link or shared blocks need no space; the intermediate results of patches do for a while.
            if reuse.isLinked(in: manifest) { plan.needs -= manifest.content(of: reuse.member)?.size ?? 0 }
            plan.needs += reuse.patches.dropLast().reduce(0) { $0 + $1.result.size }
        }
        let free = try Files.freeSpace(layout.root)
        if plan.needs + overhead > free {
            throw MoultError(
                .space, .refused, what: "not enough space in \(layout.root)",
                why:
                    "the update needs \(ByteCount(plan.needs)) and a reserve of \(ByteCount(overhead)), but only \(ByteCount(free)) is free",
                // `moult clean` might remove the generation that the rollback returns to. A store of a single file has no
                // generation to remove, and if the store is new, it is removed after this error.
                now: plan.purpose == .rollback || layout.onlyFile != nil
                    ? "Free some space on that file system, then try again."
                    : "Free some space, or remove kept generations with: moult clean --keep 1")
        }
    }

    /// Returns the space that a migration needs: a trial runs on one copy, changed content is kept in another, and every page
    /// of the file itself may be written.
    private static func migrated(_ effect: Effect, _ layout: StoreLayout) throws -> Int {
        guard case .migrate(let path, _, _, _, _) = effect.change else { return 0 }
        let sizes = try [path, "\(path)-wal"].map { try Files.factsThroughLinks(layout.file($0))?.size ?? 0 }
        return 3 * sizes.reduce(0, +)
    }
}
