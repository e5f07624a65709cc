/// What making a patch takes beside the old and the new file, which are mapped: an index of the old file, and on each thread
/// what compressing a piece takes.
package struct PatchMemory: Sendable {
    let index: Int
    let threads: Int

    static let mostIndex = 256 << 20
    /// zstd at level 19 with a piece and as much of the old file before it.
    private static let thread = 100 << 20
    /// The index of a large file finds hardly anything with less.
    private static let leastIndex = 28 << 20
    /// The smallest limit, for one thread.
    package static let least = thread + leastIndex

    /// With a limit fewer threads work, and the index of a large file knows fewer places of it, so that patches become larger.
    package init(threads: Int, limit: Int? = nil) {
        guard let limit else {
            (self.threads, index) = (threads, Self.mostIndex)
            return
        }
        self.threads = max(1, min(threads, (limit - Self.leastIndex) / Self.thread))
        index = min(Self.mostIndex, max(Self.leastIndex, limit - self.threads * Self.thread))
    }
}
