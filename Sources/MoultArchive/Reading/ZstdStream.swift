internal import CZstd
internal import MoultBasics

/// The content of a file that is compressed with zstd, block by block. The file may have several frames.
final class ZstdStream {
    private let file: RawFile
    private let context: OpaquePointer
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: ZSTD_DStreamOutSize(), alignment: 4096)
    private var input = ZSTD_inBuffer(src: nil, size: 0, pos: 0)
    /// Whether the last block was full, so that zstd may have more content without more input.
    private var wasFull = false
    private var isInFrame = false

    /// A frame of `pack` has at most 8 MiB.
    private static let largestWindowLog = 24

    init(_ file: RawFile) throws {
        self.file = file
        guard let context = ZSTD_createDCtx() else {
            throw ArchiveRefusal(.archiveLibrary, "zstd cannot start", now: nil)
        }
        self.context = context
        try check(zstd: ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Int32(Self.largestWindowLog)))
    }

    deinit {
        ZSTD_freeDCtx(context)
        block.deallocate()
    }

    /// Returns the next block, valid until the next call; empty at the end.
    func next() throws -> UnsafeRawBufferPointer {
        while true {
            if input.pos == input.size, !wasFull {
                let more = try file.next()
                if more.isEmpty {
                    if isInFrame { throw ArchiveRefusal.cut }
                    return more
                }
                input = ZSTD_inBuffer(src: more.baseAddress, size: more.count, pos: 0)
            }
            var filled = ZSTD_outBuffer(dst: block.baseAddress, size: block.count, pos: 0)
            let left = ZSTD_decompressStream(context, &filled, &input)
            guard ZSTD_isError(left) == 0 else {
                throw ArchiveRefusal(
                    .archiveDamaged, "it is damaged: zstd says: \(String(cString: ZSTD_getErrorName(left)))")
            }
            // After the end of a frame, a call without input would count as the beginning of another one.
            (isInFrame, wasFull) = (left != 0, left != 0 && filled.pos == filled.size)
            if filled.pos > 0 { return UnsafeRawBufferPointer(rebasing: block[..<filled.pos]) }
        }
    }
}
