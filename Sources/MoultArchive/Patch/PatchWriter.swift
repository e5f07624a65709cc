internal import CZstd
internal import MoultBasics
package import MoultFiles
internal import Synchronization

/// Makes patches: what turns an old file into a new one, in as few bytes as zstd finds.
package final class PatchWriter: Sendable {
    private let base: Descriptor?
    private let result: Descriptor
    private let layout: PatchLayout

    /// Without a base the patch is only the new file, compressed.
    package init(from base: consuming Descriptor?, to result: consuming Descriptor) throws {
        let baseSize = try base?.facts().size ?? 0
        layout = PatchLayout(baseSize: baseSize, resultSize: try result.facts().size)
        self.base = base
        self.result = result
    }

    /// Writes the patch; the same two files give the same bytes, however many threads work.
    ///
    /// `output` gets the bytes in order, on several threads, one at a time; so does `progress` how many bytes of the new
    /// file are done.
    package func write(
        threads: Int, progress: @Sendable (_ done: Int) throws -> Void = { _ in },
        output: @Sendable (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let layout = layout
        let frames = try packing {
            try withoutActuallyEscaping(output) { output in
                let queue = FrameQueue(output: output)
                try withoutActuallyEscaping(progress) { progress in
                    try Workers.run(jobs: layout.pieces.count, threads: threads) {
                        let compressor = try PatchCompressor()
                        return { index in
                            let piece = layout.pieces[index]
                            let packed = try compressor.compress(
                                piece, base: self.base, result: self.result, isOnly: layout.pieces.count == 1)
                            try queue.add(packed, at: index, contentSize: piece.count, progress)
                        }
                    }
                }
                return queue.frames
            }
        }
        try SeekTable.encode(frames).withUnsafeBytes { try output($0) }
    }
}

/// Packed frames that are written in order, whichever was ready first.
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

/// zstd's compressing handle with the settings of patches.
private final class PatchCompressor {
    private let context: OpaquePointer

    init() throws {
        guard let context = ZSTD_createCCtx() else { throw Refusal(.archiveLibrary, "zstd cannot start", now: nil) }
        self.context = context
    }

    deinit { ZSTD_freeCCtx(context) }

    func compress(
        _ piece: PatchLayout.Piece, base: borrowing Descriptor?, result: borrowing Descriptor, isOnly: Bool
    ) throws -> [UInt8] {
        try piece.withBase(of: base) { base in
            try MappedFile(result, piece.offset..<piece.offset + piece.count).withBytes { content in
                if isOnly, base.count <= Self.near { return try thorough(content, behind: base, piece.windowLog) }
                // What lies near in the old file, searched thoroughly; or all of it, searched for long matches only.
                // What is searched is always the end of the same prefix, so whoever decodes need not know.
                let near = UnsafeRawBufferPointer(rebasing: base.suffix(Self.near))
                let one = try thorough(content, behind: near, piece.windowLog)
                let other = try far(content, behind: base, piece.windowLog)
                return one.count <= other.count ? one : other
            }
        }
    }

    /// As much as zstd can search thoroughly in a time that publishers wait for.
    private static let near = 32 << 20

    private func thorough(
        _ content: UnsafeRawBufferPointer, behind base: UnsafeRawBufferPointer, _ windowLog: Int32
    ) throws -> [UInt8] {
        try begin(level: 19, windowLog)
        return try compress(content, behind: base)
    }

    private func far(
        _ content: UnsafeRawBufferPointer, behind base: UnsafeRawBufferPointer, _ windowLog: Int32
    ) throws -> [UInt8] {
        try begin(level: 12, windowLog)
        try set(ZSTD_c_enableLongDistanceMatching, 1)
        try set(ZSTD_c_ldmMinMatch, 32)
        try set(ZSTD_c_ldmHashRateLog, 4)
        try set(ZSTD_c_ldmHashLog, min(windowLog - 4, 24))
        // Higher strategies lose what was found far away.
        try set(ZSTD_c_strategy, Int32(ZSTD_lazy2.rawValue))
        return try compress(content, behind: base)
    }

    private func begin(level: Int32, _ windowLog: Int32) throws {
        try check(ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters))
        try set(ZSTD_c_compressionLevel, level)
        try set(ZSTD_c_windowLog, windowLog)
        // So that a wrong base is noticed at once.
        try set(ZSTD_c_checksumFlag, 1)
    }

    private func compress(_ content: UnsafeRawBufferPointer, behind base: UnsafeRawBufferPointer) throws -> [UInt8] {
        try check(ZSTD_CCtx_refPrefix(context, base.baseAddress, base.count))
        return try [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(content.count)) { buffer, count in
            let size = ZSTD_compress2(context, buffer.baseAddress, buffer.count, content.baseAddress, content.count)
            try check(size)
            count = size
        }
    }

    private func set(_ parameter: ZSTD_cParameter, _ value: Int32) throws {
        try check(ZSTD_CCtx_setParameter(context, parameter, value))
    }

    private func check(_ result: Int) throws {
        guard ZSTD_isError(result) == 0 else {
            throw Refusal(.archiveLibrary, "zstd says: \(String(cString: ZSTD_getErrorName(result)))", now: nil)
        }
    }
}
