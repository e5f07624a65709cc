internal import CZstd
internal import MoultBasics
internal import MoultFiles

/// Compresses content into independent zstd frames on several threads, and writes the frames, followed by their seek table.
///
/// The result depends on content, boundaries and level, but not on the number of threads.
package struct FrameWriter: ~Copyable {
    private let ring: FrameRing
    private let frameSize: Int
    private let output: (UnsafeRawBufferPointer) throws -> Void
    private var slot: FrameRing.Slot
    private var filled = 0
    private var frames: [Frame] = []
    /// The number of frames passed to the workers; the first `frames.count` of them are written.
    private var submitted = 0

    /// Creates a writer for the duration of `body`, finishes with the seek table, and returns the frames.
    ///
    /// `output` gets the file's bytes in order, on this thread. `onFrame` gets each frame's index and content on the
    /// thread that compresses it, in any order, for instance to compute its digest.
    package static func write(
        level: Int, threads: Int, frameSize: Int,
        onFrame: @Sendable (_ index: Int, UnsafeRawBufferPointer) throws -> Void = { _, _ in },
        output: (UnsafeRawBufferPointer) throws -> Void, body: (inout FrameWriter) throws -> Void
    ) throws -> [Frame] {
        try packing {
            let packedSize = ZSTD_compressBound(frameSize)
            let ring = FrameRing(slots: 2 * threads, contentSize: frameSize, packedSize: packedSize)
            var running: [Threads.Running] = []
            return try withoutActuallyEscaping(onFrame) { onFrame in
                defer {
                    ring.close()
                    for thread in running { thread.wait() }
                }
                for _ in 0..<threads {
                    running.append(try Threads.start { compress(from: ring, level: level, onFrame: onFrame) })
                }
                return try withoutActuallyEscaping(output) { output in
                    var writer = try FrameWriter(ring: ring, frameSize: frameSize, output: output)
                    do { try body(&writer) } catch {
                        // The workers need not compress the frames that are still waiting.
                        ring.fail(error)
                        throw error
                    }
                    return try writer.finish()
                }
            }
        }
    }

    private init(ring: FrameRing, frameSize: Int, output: @escaping (UnsafeRawBufferPointer) throws -> Void) throws {
        self.ring = ring
        self.frameSize = frameSize
        self.output = output
        slot = try ring.slot(for: 0)
    }

    /// Adds content; a frame ends when it is full.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = min(rest.count, frameSize - filled)
            UnsafeMutableRawBufferPointer(rebasing: slot.content[filled..<filled + count])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            filled += count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            if filled == frameSize { try endFrame() }
        }
    }

    package mutating func write(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

    /// Ends the current frame, so that the next content starts a new one; does nothing at the start of a frame.
    package mutating func endFrame() throws {
        guard filled > 0 else { return }
        ring.submit(frame: submitted, contentSize: filled)
        submitted += 1
        filled = 0
        slot = try ring.slot(for: submitted)
        try writeOut(slot)
    }

    private consuming func finish() throws -> [Frame] {
        try endFrame()
        while frames.count < submitted { try writeOut(ring.slot(for: frames.count)) }
        try SeekTable.encode(frames).withUnsafeBytes { try output($0) }
        return frames
    }

    /// Writes the compressed frame in a slot, if any, and frees the slot.
    private mutating func writeOut(_ slot: FrameRing.Slot) throws {
        guard case .packed = slot.state else { return }
        try output(slot.filledPacked)
        frames.append(Frame(packedSize: slot.packedSize, contentSize: slot.contentSize))
        ring.release(frame: slot.frame)
    }
}

/// Compresses frames of the ring on a worker's thread until none are left.
private func compress(
    from ring: FrameRing, level: Int, onFrame: @Sendable (Int, UnsafeRawBufferPointer) throws -> Void
) {
    do {
        let compressor = try FrameCompressor(level: level)
        while let slot = ring.take() {
            try onFrame(slot.frame, slot.filledContent)
            ring.finish(slot, packedSize: try compressor.compress(slot.filledContent, into: slot.packed))
        }
    } catch { ring.fail(error) }
}

/// zstd's compression context with its settings.
final class FrameCompressor {
    private let context: OpaquePointer

    init(level: Int) throws {
        guard let context = ZSTD_createCCtx() else {
            throw ArchiveRefusal(.archiveLibrary, "zstd cannot start", now: nil)
        }
        self.context = context
        try check(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Int32(level)))
        // Allows `zstd -t` to find damage without a manifest.
        try check(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1))
    }

    deinit { ZSTD_freeCCtx(context) }

    func compress(_ content: UnsafeRawBufferPointer, into packed: UnsafeMutableRawBufferPointer) throws -> Int {
        let count = ZSTD_compress2(
            context, packed.baseAddress, packed.count, content.baseAddress, content.count)
        try check(count)
        return count
    }

    private func check(_ result: Int) throws {
        guard ZSTD_isError(result) == 0 else {
            throw ArchiveRefusal(.archiveLibrary, "zstd says: \(String(cString: ZSTD_getErrorName(result)))", now: nil)
        }
    }
}
