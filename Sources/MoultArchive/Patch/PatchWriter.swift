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
        try check(ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters))
        try set(ZSTD_c_compressionLevel, 19)
        try set(ZSTD_c_windowLog, piece.windowLog)
        // So that a wrong base is noticed at once.
        try set(ZSTD_c_checksumFlag, 1)
        if !isOnly || piece.base.count > 32 << 20 { try settings(forFar: piece) }
        return try piece.withBase(of: base) { base in
            try MappedFile(result, piece.offset..<piece.offset + piece.count).withBytes { content in
                try check(ZSTD_CCtx_refPrefix(context, base.baseAddress, base.count))
                return try [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(content.count)) { buffer, count in
                    let size = ZSTD_compress2(
                        context, buffer.baseAddress, buffer.count, content.baseAddress, content.count)
                    try check(size)
                    count = size
                }
            }
        }
    }

    /// What is alike far away is found by long distance matching, and only what is near is searched byte by byte:
    /// searching an old file of hundreds of megabytes so for each piece would take hours.
    private func settings(forFar piece: PatchLayout.Piece) throws {
        try set(ZSTD_c_enableLongDistanceMatching, 1)
        try set(ZSTD_c_ldmMinMatch, 32)
        try set(ZSTD_c_ldmHashRateLog, 5)
        try set(ZSTD_c_ldmHashLog, min(piece.windowLog - 5, 24))
        // Higher strategies lose most of what was found far away.
        try set(ZSTD_c_strategy, Int32(ZSTD_btlazy2.rawValue))
        try set(ZSTD_c_hashLog, 20)
        try set(ZSTD_c_chainLog, 20)
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
