internal import CZstd
internal import MoultBasics

/// Content that is small enough for memory, as one zstd frame with a checksum.
package enum SingleFrame {
    package static func compress(_ content: [UInt8]) throws -> [UInt8] {
        try packing {
            try [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(content.count)) { packed, count in
                count = try content.withUnsafeBytes {
                    try FrameCompressor(level: 6).compress($0, into: UnsafeMutableRawBufferPointer(packed))
                }
            }
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
