internal import CZstd
internal import MoultBasics
package import MoultFiles

/// Applies a patch: produces the new file's content from the patch and the old file. The patch's frames are the pieces of
/// `PatchLayout`.
///
/// The caller verifies the output, because a wrong old file causes an error or wrong bytes.
package final class PatchReader: FrameSource {
    private let file: Descriptor
    private let base: Descriptor?
    private let baseSize: Int
    package let layout: PatchLayout
    private let frames: [Frame]
    private let offsets: [Int]

    /// Creates a reader for a patch that turns `base` into a file of the given size. Refuses a patch with a different layout.
    package init(_ file: consuming Descriptor, base: consuming Descriptor?, resultSize: Int) throws {
        let baseSize = try base?.facts().size ?? 0
        let layout = PatchLayout(baseSize: baseSize, resultSize: resultSize)
        let found = try SeekTable.read(file)
        frames = try reading(file.path) {
            guard let found, found.map(\.contentSize) == layout.contentSizes else {
                throw ArchiveRefusal(
                    .archiveFrames,
                    found == nil ? "it is not a patch, or it is truncated" : "it is for files of different sizes",
                    now: .samePatch)
            }
            // No frame is larger than zstd's output for incompressible content.
            guard found.allSatisfy({ $0.packedSize <= ZSTD_compressBound($0.contentSize) }) else {
                throw ArchiveRefusal(.archiveFrames, "one of its frames is too large", now: .patchAgain)
            }
            return found
        }
        (offsets, self.layout, self.baseSize) = (frames.offsets, layout, baseSize)
        self.base = base
        self.file = file
    }

    package var contentSizes: [Int] { layout.contentSizes }

    /// The number of threads that fit into the memory limit: their buffers, with the columns of differences, need at most 64
    /// MiB in total. LZMA needs additional memory.
    package var maxThreads: Int { Self.maxThreads(for: layout) }

    package static func maxThreads(for layout: PatchLayout) -> Int {
        let most = layout.contentSizes.max() ?? 1
        return max(1, decoderMemoryLimit / (ZSTD_compressBound(most) + most + 2 * DifferenceFrame.maxColumns))
    }

    package func decoder(into memory: UnsafeMutableRawBufferPointer?) throws -> (Int) throws -> UnsafeRawBufferPointer {
        try reading(file.path) {
            let decoder = try FrameDecoder(for: frames, into: memory)
            let old = OldBytes(count: baseSize) { try Self.read(self.base, into: $0, at: $1) }
            return { index in
                try reading(self.file.path) {
                    let packed = try decoder.load(self.frames[index], from: self.file, at: self.offsets[index])
                    return try self.decode(packed, self.layout.pieces[index], self.offsets[index], old, by: decoder)
                }
            }
        }
    }

    private static func read(_ file: borrowing Descriptor?, into buffer: UnsafeMutableRawBufferPointer, at offset: Int)
        throws -> Int
    {
        switch file {
        case .some(let file): try file.read(into: buffer, at: offset)
        case .none: 0
        }
    }

    /// Decodes one piece. The content belongs to the decoder, and is valid until the decoder's next call.
    private func decode(
        _ frame: UnsafeRawBufferPointer, _ piece: PatchLayout.Piece, _ offset: Int, _ old: OldBytes,
        by decoder: FrameDecoder
    ) throws -> UnsafeRawBufferPointer {
        guard let columns = try DifferenceFrame.decode(frame) else {
            return try piece.withBase(of: base) {
                try decoder.decode(frame, at: offset, contentSize: piece.count, behind: $0)
            }
        }
        let content = UnsafeMutableRawBufferPointer(rebasing: decoder.content[..<piece.count])
        try columns.withUnsafeBytes { columns in
            var reader = try DifferenceReader(columns, old: old, start: piece.offset)
            try reader.read(into: content)
        }
        return UnsafeRawBufferPointer(content)
    }
}

/// A file that consists of independently decodable frames.
package protocol FrameSource: Sendable {
    /// The content size of each frame.
    var contentSizes: [Int] { get }

    /// The maximum number of threads that may decode at the same time, because their buffers need memory.
    var maxThreads: Int { get }

    /// Returns a function with which one thread decodes frames by their numbers. The content is valid until the next call of
    /// that function.
    ///
    /// With `memory`, which has room for the largest frame, the content is written to its beginning.
    func decoder(into memory: UnsafeMutableRawBufferPointer?) throws -> (Int) throws -> UnsafeRawBufferPointer
}

extension FrameSource {
    /// Starts to decode the frames in order, and passes the index and content of each to `onFrame` on the thread that decoded
    /// it. The content is valid only during the call. The first error is thrown.
    package func read(
        threads: Int, onFrame: @Sendable (_ index: Int, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try withoutActuallyEscaping(onFrame) { onFrame in
            try Workers.run(jobs: contentSizes.count, threads: min(threads, maxThreads)) {
                let decode = try decoder(into: nil)
                return { index in try onFrame(index, decode(index)) }
            }
        }
    }
}

extension [Frame] {
    /// The position of each frame in the file.
    var offsets: [Int] {
        var sum = 0
        return map { frame in
            defer { sum += frame.packedSize }
            return sum
        }
    }

    /// The largest compressed size, and the largest content size.
    var maxPacked: Int { reduce(1) { Swift.max($0, $1.packedSize) } }
    var maxContent: Int { reduce(1) { Swift.max($0, $1.contentSize) } }
}

/// One thread's decoder with its two buffers.
final class FrameDecoder {
    private let context: OpaquePointer
    private let packed: UnsafeMutableRawBufferPointer
    let content: UnsafeMutableRawBufferPointer
    private let ownsContent: Bool

    /// If `memory` is given, the content is written there; `memory` must outlive this decoder.
    init(packedSize: Int, contentSize: Int, into memory: UnsafeMutableRawBufferPointer? = nil) throws {
        guard let context = ZSTD_createDCtx() else { throw ArchiveRefusal.library("zstd cannot start") }
        self.context = context
        packed = .allocate(byteCount: packedSize, alignment: 4096)
        content = memory ?? .allocate(byteCount: contentSize, alignment: 4096)
        ownsContent = memory == nil
    }

    convenience init(for frames: [Frame], into memory: UnsafeMutableRawBufferPointer?) throws {
        try self.init(packedSize: frames.maxPacked, contentSize: frames.maxContent, into: memory)
    }

    deinit {
        ZSTD_freeDCtx(context)
        packed.deallocate()
        if ownsContent { content.deallocate() }
    }

    func decode(_ frame: Frame, from file: borrowing Descriptor, at offset: Int) throws -> UnsafeRawBufferPointer {
        try decode(load(frame, from: file, at: offset), at: offset, contentSize: frame.contentSize)
    }

    /// Returns the compressed frame as it is in the file, valid until the next frame is loaded.
    func load(_ frame: Frame, from file: borrowing Descriptor, at offset: Int) throws -> UnsafeRawBufferPointer {
        let packed = UnsafeMutableRawBufferPointer(rebasing: packed[..<frame.packedSize])
        try fill(packed, from: file, at: offset)
        return UnsafeRawBufferPointer(packed)
    }

    /// Decodes the loaded frame. `prefix` is the dictionary that the frame was compressed with, if any; it must stay valid
    /// until the call has returned.
    func decode(
        _ packed: UnsafeRawBufferPointer, at offset: Int, contentSize: Int,
        behind prefix: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) throws -> UnsafeRawBufferPointer {
        // There must be one frame and nothing after it, because zstd would also decode several frames in a row.
        guard ZSTD_findFrameCompressedSize(packed.baseAddress, packed.count) == packed.count else {
            throw ArchiveRefusal(.archiveFrames, "the frame at \(offset) does not end where it should")
        }
        // A prefix applies to one frame only.
        try check(zstd: ZSTD_DCtx_refPrefix(context, prefix.baseAddress, prefix.count))
        let count = ZSTD_decompressDCtx(
            context, content.baseAddress, contentSize, packed.baseAddress, packed.count)
        guard ZSTD_isError(count) == 0 else {
            throw ArchiveRefusal(
                .archiveDamaged,
                "the frame at \(offset) is damaged: zstd says: \(String(cString: ZSTD_getErrorName(count)))")
        }
        guard count == contentSize else {
            throw ArchiveRefusal(.archiveFrames, "the frame at \(offset) has \(count) bytes instead of \(contentSize)")
        }
        return UnsafeRawBufferPointer(rebasing: content[..<count])
    }
}
