/// The memory for making a patch, in addition to the mapped old and new files: an index of the old file, and buffers
/// for compressing a piece on each thread.
package struct PatchMemory: Sendable {
    let index: Int
    let threads: Int

    static let maxIndex = 256 << 20
    /// The memory of zstd at level 19 for a piece and an equally large part of the old file before it.
    private static let thread = 100 << 20
    /// With less memory, the index of a large file finds hardly any matches.
    private static let minIndex = 28 << 20
    /// The smallest limit, for one thread.
    package static let minimum = thread + minIndex

    /// With a limit, fewer threads run, and the index of a large file has fewer positions, so patches become larger.
    package init(threads: Int, limit: Int? = nil) {
        guard let limit else {
            (self.threads, index) = (threads, Self.maxIndex)
            return
        }
        self.threads = max(1, min(threads, (limit - Self.minIndex) / Self.thread))
        index = min(Self.maxIndex, max(Self.minIndex, limit - self.threads * Self.thread))
    }
}
