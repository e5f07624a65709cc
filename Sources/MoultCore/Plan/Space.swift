internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Room on the store's file system, counted before anything is begun.
enum Space {
    /// For directories, the journal and the file system's own blocks.
    private static let overhead = 256 << 10

    static func need(for plan: inout Plan, _ manifest: Manifest, bytes: Int, in layout: StoreLayout) throws {
        guard plan.changesStore else { return }
        plan.needs = plan.effects.reduce(0) { $0 + $1.stagedBytes } + bytes
        let free = try Files.freeSpace(layout.root)
        if plan.needs + overhead > free {
            throw MoultError(
                .space, .refused, what: "there is not enough room in \(layout.root)",
                why: "the update needs \(ByteCount(plan.needs + overhead)), and \(ByteCount(free)) is free",
                now: "Free some space, or remove kept generations with: moult clean --keep 1")
        }
    }
}
