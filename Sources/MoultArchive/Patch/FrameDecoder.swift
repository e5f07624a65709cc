internal import CZstd
internal import MoultBasics
internal import MoultFiles

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
        guard let context = ZSTD_createDCtx() else {
            throw ArchiveRefusal(.archiveLibrary, "zstd cannot start", now: nil)
        }
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
        let referred = ZSTD_DCtx_refPrefix(context, prefix.baseAddress, prefix.count)
        guard ZSTD_isError(referred) == 0 else {
            throw ArchiveRefusal(
                .archiveLibrary, "zstd says: \(String(cString: ZSTD_getErrorName(referred)))", now: nil)
        }
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
