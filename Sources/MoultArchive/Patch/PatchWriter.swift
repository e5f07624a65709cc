internal import MoultBasics
package import MoultFiles
internal import Synchronization

/// Makes patches, which turn an old file into a new one.
package final class PatchWriter: Sendable {
    private let base: Descriptor?
    private let result: Descriptor
    private let layout: PatchLayout

    /// Without a base, the patch is only the compressed new file.
    package init(from base: consuming Descriptor?, to result: consuming Descriptor) throws {
        let baseSize = try base?.facts().size ?? 0
        layout = PatchLayout(baseSize: baseSize, resultSize: try result.facts().size)
        self.base = base
        self.result = result
    }

    /// Writes the patch. The same two files and the same memory for the index give the same bytes, regardless of the
    /// number of threads.
    ///
    /// `output` gets the bytes in order, on several threads, but only one at a time. `progress` gets the number of
    /// bytes of the new file that are done, in the same way.
    package func write(
        using memory: PatchMemory, progress: @Sendable (_ done: Int) throws -> Void = { _ in },
        output: @Sendable (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let frames = try packing {
            try PatchLayout.withWhole(of: base) { base in
                let old = base.isEmpty ? nil : OldFile(base, memory: memory.index)
                return try withoutActuallyEscaping(output) { output in
                    let queue = FrameQueue(output: output)
                    try withoutActuallyEscaping(progress) { try compress(old, memory.threads, into: queue, $0) }
                    return queue.frames
                }
            }
        }
        try SeekTable.encode(frames).withUnsafeBytes { try output($0) }
    }

    /// Returns whether samples of each piece of the new file have almost nothing in common with the old file. If so, the patch
    /// would be about as large as the compressed file.
    package func isUnlike() throws -> Bool {
        try packing {
            try PatchLayout.withWhole(of: base) { base in
                if base.isEmpty { return true }
                let old = OldFile(base)
                return try layout.pieces.allSatisfy { piece in
                    try MappedFile(result, piece.offset..<piece.offset + piece.count).withBytes {
                        !old.has($0, at: piece.offset) && old.isUnlike($0, start: piece.offset)
                    }
                }
            }
        }
    }

    private func compress(
        _ old: OldFile?, _ threads: Int, into queue: FrameQueue, _ progress: @escaping @Sendable (Int) throws -> Void
    ) throws {
        let layout = layout
        try Workers.run(jobs: layout.pieces.count, threads: threads) {
            let compressor = try PatchCompressor(old)
            return { index in
                let piece = layout.pieces[index]
                let packed = try piece.withBase(of: self.base) { near in
                    try MappedFile(self.result, piece.offset..<piece.offset + piece.count).withBytes {
                        try compressor.compress($0, of: piece, behind: near)
                    }
                }
                try queue.add(packed, at: index, contentSize: piece.count, progress)
            }
        }
    }
}

/// Compressed frames that are written in order, regardless of which was ready first.
private final class FrameQueue: Sendable {
    private struct State {
        var frames: [Frame] = []
        var waiting: [Int: (bytes: [UInt8], contentSize: Int)] = [:]
        var done = 0
    }
    private let state = Mutex(State())
    private let output: @Sendable (UnsafeRawBufferPointer) throws -> Void

    init(output: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) { self.output = output }

    var frames: [Frame] { state.withLock { $0.frames } }

    func add(_ bytes: [UInt8], at index: Int, contentSize: Int, _ progress: (Int) throws -> Void) throws {
        try state.withLock { state in
            state.waiting[index] = (bytes, contentSize)
            while let next = state.waiting.removeValue(forKey: state.frames.count) {
                try next.bytes.withUnsafeBytes { try output($0) }
                state.frames.append(Frame(packedSize: next.bytes.count, contentSize: next.contentSize))
                state.done += next.contentSize
                try progress(state.done)
            }
        }
    }
}

/// Compresses the pieces of a patch: as differences from the old file if a piece has enough in common with it, otherwise with
/// zstd.
final class PatchCompressor {
    private let compressor: FrameCompressor
    private let old: OldFile?

    init(_ old: OldFile?) throws { (self.old, compressor) = (old, try FrameCompressor()) }

    /// Compresses a piece. `near` is the part of the old file that zstd uses.
    func compress(
        _ content: UnsafeRawBufferPointer, of piece: PatchLayout.Piece, behind near: UnsafeRawBufferPointer
    ) throws -> [UInt8] {
        guard let old, !content.isEmpty else { return try zstd(content, behind: near, piece.windowLog) }
        var covers = [Cover(literals: 0, place: 0, count: content.count, shift: piece.offset)]
        if !old.has(content, at: piece.offset) {
            if old.isUnlike(content, start: piece.offset) { return try plain(content, piece) }
            guard let search = CoverSearch(content, in: old.index) else {
                return try zstd(content, behind: near, piece.windowLog)
            }
            covers = search.covers(start: piece.offset)
        }
        let found = covers.reduce(0) { $0 + $1.count }
        if found < content.count / 8 { return try plain(content, piece) }
        let columns = DifferenceWriter(covers, of: content, in: old.bytes, start: piece.offset)
        let bytes = columns.bytes
        guard bytes.count <= DifferenceFrame.maxColumns else { return try zstd(content, behind: near, piece.windowLog) }
        let difference = try DifferenceFrame.encode(bytes)
        // For similar content, the difference is always smaller, and trying zstd takes a hundred times as long.
        if columns.literals <= content.count / 4 { return difference }
        let other = try found < content.count / 4 ? plain(content, piece) : zstd(content, behind: near, piece.windowLog)
        return difference.count <= other.count ? difference : other
    }

    /// Compresses content that has little in common with the old file. At the highest level and with a prefix, zstd would take
    /// minutes, and its result would hardly be smaller.
    private func plain(_ content: UnsafeRawBufferPointer, _ piece: PatchLayout.Piece) throws -> [UInt8] {
        try zstd(content, behind: .init(start: nil, count: 0), piece.windowLog, level: 12)
    }

    /// The maximum size of the part of the old file that zstd searches. It limits how long publishers wait.
    private static let maxNear = 16 << 20

    private func zstd(
        _ content: UnsafeRawBufferPointer, behind base: UnsafeRawBufferPointer, _ windowLog: Int32, level: Int = 19
    ) throws -> [UInt8] {
        // The search always covers the end of the same prefix, so the decoder does not need to know this limit.
        let near = UnsafeRawBufferPointer(rebasing: base.suffix(Self.maxNear))
        return try compressor.compress(content, level: level, windowLog: windowLog, behind: near)
    }
}

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
