internal import CLzma

/// The compressed form of a piece that is encoded by its differences: a mark, the size and CRC of the columns, and the
/// LZMA-compressed columns.
enum DifferenceFrame {
    /// A zstd frame never starts with this byte.
    private static let mark: UInt8 = 1
    private static let headerSize = 9
    /// The maximum size of the columns. A piece that needs more has little in common with the old file, and is compressed with
    /// zstd instead.
    static let maxColumns = 4 << 20

    static func encode(_ columns: [UInt8]) throws -> [UInt8] {
        let packed = try LzmaCoder(contentSize: columns.count).encode(columns)
        return [mark] + littleEndian(columns.count) + littleEndian(Int(crc(columns))) + packed
    }

    /// Returns the columns; nil for a different kind of frame.
    static func decode(_ frame: UnsafeRawBufferPointer) throws -> [UInt8]? {
        guard frame.first == mark else { return nil }
        guard frame.count >= headerSize else { throw ArchiveRefusal.difference }
        let size = Int(UInt32(littleEndian: frame.loadUnaligned(fromByteOffset: 1, as: UInt32.self)))
        let expected = UInt32(littleEndian: frame.loadUnaligned(fromByteOffset: 5, as: UInt32.self))
        guard size <= maxColumns else { throw ArchiveRefusal.difference }
        let columns = try LzmaCoder(contentSize: size).decode(Array(frame[headerSize...]), size: size)
        guard crc(columns) == expected else { throw ArchiveRefusal.difference }
        return columns
    }

    private static func littleEndian(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 { lzma_crc32(bytes, bytes.count, 0) }
}
