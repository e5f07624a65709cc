internal import CZstd
internal import MoultBasics
internal import MoultFiles
internal import Synchronization

/// zstd's compressor, on several threads: each piece of the content is a frame of its own, and readers see one stream. The result
/// depends on the content and the level, but not on the number of threads.
final class ZstdEncoder: Encoder {
    private let output: ArchiveOutput
    private let level: Int
    private let threads: Int
    /// The content of the next frames, one for each thread.
    private let block: UnsafeMutableRawBufferPointer
    private var filled = 0

    /// Larger frames compress better: frames of 8 MiB make a file less than 1 % larger than a single frame would.
    private static let frameSize = 8 << 20

    /// `size` is the number of bytes of the whole content.
    init(level: Int, threads: Int, size: Int, _ output: @escaping ArchiveOutput) {
        (self.output, self.level, self.threads) = (output, level, max(1, threads))
        block = .allocate(byteCount: min(size, self.threads * Self.frameSize), alignment: 4096)
    }

    deinit { block.deallocate() }

    func encode(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest[..<min(rest.count, block.count - filled)])
            UnsafeMutableRawBufferPointer(rebasing: block[filled...]).copyMemory(from: part)
            filled += part.count
            rest = UnsafeRawBufferPointer(rebasing: rest[part.count...])
            if filled == block.count { try compress() }
        }
    }

    func finish() throws { if filled > 0 { try compress() } }

    private func compress() throws {
        let content = stride(from: 0, to: filled, by: Self.frameSize).map {
            Content(bytes: UnsafeRawBufferPointer(rebasing: block[$0..<min(filled, $0 + Self.frameSize)]))
        }
        let frames = Mutex([[UInt8]](repeating: [], count: content.count))
        let level = level
        try Workers.run(jobs: content.count, threads: threads) {
            let compressor = try FrameCompressor(level: level)
            return { index in
                let frame = try compressor.compress(content[index].bytes)
                frames.withLock { $0[index] = frame }
            }
        }
        for frame in frames.withLock({ $0 }) { try frame.withUnsafeBytes(output) }
        filled = 0
    }

    /// A part of the block, which stays the same while it is compressed.
    private struct Content: @unchecked Sendable { let bytes: UnsafeRawBufferPointer }
}
