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

/// Finds positions of bytes in the old file, using hashes of short pieces of it.
final class OldContent: @unchecked Sendable {
    // Unchecked: only `init` writes the table, and nothing writes to the bytes of the old file.
    let bytes: UnsafeRawBufferPointer
    private let table: UnsafeMutablePointer<UInt32>
    private let step: Int
    private let shift: UInt64

    /// The number of bytes that are hashed at each position. A match with at least `step - 1` more bytes always contains such a
    /// position.
    static let width = 12
    /// The number of positions per hash. The last ones in the file come first; if there are more, the earliest are dropped.
    private static let ways = 4
    private static let maxPlaces = 1 << 25

    /// The bytes must outlive this object. The table uses at most `memory` bytes; a smaller table has fewer positions.
    init(_ bytes: UnsafeRawBufferPointer, memory: Int = PatchMemory.maxIndex) {
        self.bytes = bytes
        let maxSlots = max(64, memory / (Self.ways * MemoryLayout<UInt32>.size))
        let largest = Int.bitWidth - 1 - maxSlots.leadingZeroBitCount
        let most = min(Self.maxPlaces, (Self.ways << largest) * 2 / 3)
        step = max(4, (bytes.count + most - 1) / most)
        let places = bytes.count / step
        let logarithm = min(largest, max(6, Int.bitWidth - (places * 3 / 2 / Self.ways).leadingZeroBitCount))
        shift = UInt64(64 - logarithm)
        table = .allocate(capacity: Self.ways << logarithm)
        table.initialize(repeating: 0, count: Self.ways << logarithm)
        guard let start = bytes.baseAddress else { return }
        for place in 0..<places where place * step + Self.width <= bytes.count {
            let at = start + place * step
            if Self.isOneByteOnly(at) { continue }
            let slot = slot(of: at)
            for way in stride(from: Self.ways - 1, to: 0, by: -1) { slot[way] = slot[way - 1] }
            slot[0] = UInt32(place + 1)
        }
    }

    deinit { table.deallocate() }

    /// Calls `body` with positions in the old file that may have the same `width` bytes as `pointer`.
    @inline(__always)
    func forEachPlace(like pointer: UnsafeRawPointer, _ body: (Int) -> Void) {
        let slot = slot(of: pointer)
        for way in 0..<Self.ways {
            if slot[way] == 0 { return }
            body((Int(slot[way]) - 1) * step)
        }
    }

    @inline(__always)
    private func slot(of pointer: UnsafeRawPointer) -> UnsafeMutablePointer<UInt32> {
        let first = pointer.loadUnaligned(as: UInt64.self)
        let last = pointer.loadUnaligned(fromByteOffset: Self.width - 8, as: UInt64.self)
        let mixed = (first &* 0x9e37_79b9_7f4a_7c15) ^ ((last &+ (first >> 29)) &* 0xc2b2_ae3d_27d4_eb4f)
        return table + Int((mixed &* 0x1656_67b1_9e37_79f9) >> shift) * Self.ways
    }

    /// Returns whether all bytes are equal: such runs occur everywhere, so a match of one means nothing.
    private static func isOneByteOnly(_ pointer: UnsafeRawPointer) -> Bool {
        let first = pointer.loadUnaligned(as: UInt64.self)
        return first == pointer.loadUnaligned(fromByteOffset: width - 8, as: UInt64.self)
            && first == (first & 0xff) &* 0x0101_0101_0101_0101
    }
}
