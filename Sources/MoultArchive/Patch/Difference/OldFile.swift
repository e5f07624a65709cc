internal import MoultLibc
internal import Synchronization

/// The old file of a patch. Its content is indexed when the first piece needs the index: nearly identical files do not need
/// one.
final class OldFile: @unchecked Sendable {
    // Unchecked: nothing writes to the bytes of the old file, and the index is protected by the lock until it is
    // complete.
    let bytes: UnsafeRawBufferPointer
    private let memory: Int
    private let cache = Mutex<OldContent?>(nil)

    /// The bytes must outlive this object. The index uses at most `memory` bytes.
    init(_ bytes: UnsafeRawBufferPointer, memory: Int = PatchMemory.maxIndex) {
        (self.bytes, self.memory) = (bytes, memory)
    }

    var index: OldContent {
        cache.withLock { cache in
            if let cache { return cache }
            let index = OldContent(bytes, memory: memory)
            cache = index
            return index
        }
    }

    /// Returns whether the old file has exactly this content at a position.
    func has(_ content: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        guard offset + content.count <= bytes.count, let one = content.baseAddress, let other = bytes.baseAddress else {
            return false
        }
        return memcmp(one, other + offset, content.count) == 0
    }

    /// Returns whether samples of the content have almost nothing in common with the old file, so that a full search is not
    /// worthwhile. `start` is the position of the content in the new file.
    func isUnlike(_ content: UnsafeRawBufferPointer, start: Int) -> Bool {
        guard content.count >= 4 * Self.samples * Self.sampleSize else { return false }
        var common = 0
        for number in 0..<Self.samples {
            let first = (content.count - Self.sampleSize) / (Self.samples - 1) * number
            let sample = UnsafeRawBufferPointer(rebasing: content[first..<first + Self.sampleSize])
            let covers = CoverSearch(sample, in: index)?.covers(start: start + first) ?? []
            common += covers.reduce(0) { $0 + $1.count }
        }
        return common < Self.samples * Self.sampleSize / 50
    }

    private static let samples = 128
    private static let sampleSize = 1024
}
