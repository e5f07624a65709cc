internal import CZstd
internal import MoultBasics

/// Content that is small enough for memory, as one zstd frame with a checksum.
package enum SingleFrame {
    package static func compress(_ content: [UInt8]) throws -> [UInt8] {
        try packing { try content.withUnsafeBytes { try FrameCompressor().compress($0, level: 6) } }
    }

    /// Returns the content of a frame; throws if the frame is damaged, or larger than `limit` bytes.
    package static func decompress(_ packed: [UInt8], limit: Int, of path: String) throws -> [UInt8] {
        try reading(path) {
            try packed.withUnsafeBytes { bytes in
                let size = ZSTD_getFrameContentSize(bytes.baseAddress, bytes.count)
                // The two values for "unknown" and "error" are larger than every limit.
                guard size <= limit else {
                    throw ArchiveRefusal(.archiveDamaged, "it is not a frame of at most \(ByteCount(limit))")
                }
                let decoder = try FrameDecoder(packedSize: 1, contentSize: max(1, Int(size)))
                return Array(try decoder.decode(bytes, at: 0, contentSize: Int(size)))
            }
        }
    }
}

/// zstd's compressor.
final class FrameCompressor {
    private let context: OpaquePointer

    init() throws {
        guard let context = ZSTD_createCCtx() else { throw ArchiveRefusal.library("zstd cannot start") }
        self.context = context
    }

    deinit { ZSTD_freeCCtx(context) }

    /// Returns a frame. The decoder of a frame that was compressed behind other bytes needs the same bytes.
    func compress(
        _ content: UnsafeRawBufferPointer, level: Int, windowLog: Int32? = nil,
        behind base: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) throws -> [UInt8] {
        try check(zstd: ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters))
        try set(ZSTD_c_compressionLevel, Int32(level))
        if let windowLog { try set(ZSTD_c_windowLog, windowLog) }
        // Allows `zstd -t` to find damage, and the decoder to detect a wrong base at once.
        try set(ZSTD_c_checksumFlag, 1)
        try check(zstd: ZSTD_CCtx_refPrefix(context, base.baseAddress, base.count))
        return try [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(content.count)) { packed, count in
            let size = ZSTD_compress2(context, packed.baseAddress, packed.count, content.baseAddress, content.count)
            try check(zstd: size)
            count = size
        }
    }

    private func set(_ parameter: ZSTD_cParameter, _ value: Int32) throws {
        try check(zstd: ZSTD_CCtx_setParameter(context, parameter, value))
    }
}

/// Throws if a function of zstd has returned an error.
func check(zstd result: Int) throws {
    guard ZSTD_isError(result) == 0 else {
        throw ArchiveRefusal(.archiveLibrary, "zstd says: \(String(cString: ZSTD_getErrorName(result)))", now: nil)
    }
}
