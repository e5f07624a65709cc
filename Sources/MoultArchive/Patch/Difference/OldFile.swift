internal import MoultLibc
internal import Synchronization

/// The old file of a patch. The index of its content is made when the first piece needs it: files that are nearly the same
/// need none.
final class OldFile: @unchecked Sendable {
    // Unchecked: no code writes the old file's bytes, and the index is behind the lock until it is complete.
    let bytes: UnsafeRawBufferPointer
    private let made = Mutex<OldContent?>(nil)

    /// The bytes must stay for as long as this does.
    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var index: OldContent {
        made.withLock { made in
            if let made { return made }
            let index = OldContent(bytes)
            made = index
            return index
        }
    }

    /// Whether it has this very content at a place.
    func has(_ content: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        guard offset + content.count <= bytes.count, let one = content.baseAddress, let other = bytes.baseAddress else {
            return false
        }
        return memcmp(one, other + offset, content.count) == 0
    }

    /// Whether samples of the content have next to nothing in common with it, so that a search of all of it would find nothing
    /// that pays. `start` is where the content is in the new file.
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
