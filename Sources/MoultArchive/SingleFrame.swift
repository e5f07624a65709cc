internal import CZstd
internal import MoultBasics

/// Content that is small enough for memory, as one zstd frame with a checksum.
package enum SingleFrame {
    package static func compress(_ content: [UInt8]) throws -> [UInt8] {
        try packing {
            try content.withUnsafeBytes(FrameCompressor(level: 6).compress)
        }
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

/// zstd's compression context with its settings.
final class FrameCompressor {
    private let context: OpaquePointer

    init(level: Int) throws {
        guard let context = ZSTD_createCCtx() else {
            throw ArchiveRefusal(.archiveLibrary, "zstd cannot start", now: nil)
        }
        self.context = context
        try check(zstd: ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Int32(level)))
        // Allows `zstd -t` to find damage.
        try check(zstd: ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1))
    }

    deinit { ZSTD_freeCCtx(context) }

    func compress(_ content: UnsafeRawBufferPointer) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(content.count)) { packed, count in
            let size = ZSTD_compress2(context, packed.baseAddress, packed.count, content.baseAddress, content.count)
            try check(zstd: size)
            count = size
        }
    }
}

/// Throws if a function of zstd has returned an error.
func check(zstd result: Int) throws {
    guard ZSTD_isError(result) == 0 else {
        throw ArchiveRefusal(.archiveLibrary, "zstd says: \(String(cString: ZSTD_getErrorName(result)))", now: nil)
    }
}
