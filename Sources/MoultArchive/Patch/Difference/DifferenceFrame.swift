internal import CLzma

/// The packed form of a piece that is told by its differences: a mark, size and CRC of the columns, and the columns, by LZMA.
enum DifferenceFrame {
    /// No zstd frame begins so.
    private static let mark: UInt8 = 1
    private static let headerSize = 9
    /// What needs more is hardly alike, and is told in another way.
    static let mostColumns = 4 << 20

    static func encode(_ columns: [UInt8]) throws -> [UInt8] {
        let packed = try coder(for: columns.count).encode(columns)
        return [mark] + littleEndian(columns.count) + littleEndian(Int(crc(columns))) + packed
    }

    /// The columns, or nil if it is not such a frame.
    static func decode(_ frame: UnsafeRawBufferPointer) throws -> [UInt8]? {
        guard frame.first == mark else { return nil }
        guard frame.count >= headerSize else { throw Refusal.difference }
        let size = Int(UInt32(littleEndian: frame.loadUnaligned(fromByteOffset: 1, as: UInt32.self)))
        let expected = UInt32(littleEndian: frame.loadUnaligned(fromByteOffset: 5, as: UInt32.self))
        guard size <= mostColumns else { throw Refusal.difference }
        let columns = try coder(for: size).decode(Array(frame[headerSize...]), size: size)
        guard crc(columns) == expected else { throw Refusal.difference }
        return columns
    }

    /// The size determines how: two bits of the byte before say what a byte is likely to be, and its place says nothing.
    private static func coder(for size: Int) throws -> LzmaCoder {
        try LzmaCoder(method: .lzma1, properties: [2] + littleEndian(max(1 << 12, size)))
    }

    private static func littleEndian(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 { lzma_crc32(bytes, bytes.count, 0) }
}

extension LzmaCoder {
    /// Packs short content as small as it can, so that `decode` comes to it again.
    func encode(_ content: [UInt8]) throws -> [UInt8] {
        try withFilters { filters in
            guard let options = filters[0].options?.assumingMemoryBound(to: lzma_options_lzma.self) else {
                throw Refusal(.archiveLibrary, "xz has no options", now: nil)
            }
            // The preset says how to search, the properties what comes out.
            let known = options.pointee
            guard lzma_lzma_preset(options, moult_lzma_extreme) == 0 else {
                throw Refusal(.archiveLibrary, "xz has no such preset", now: nil)
            }
            (options.pointee.dict_size, options.pointee.lc) = (known.dict_size, known.lc)
            (options.pointee.lp, options.pointee.pb) = (known.lp, known.pb)
            var count = 0
            // It grows by less than that.
            let packed = [UInt8](unsafeUninitializedCapacity: content.count + content.count / 8 + 1024) {
                buffer, filled in
                if lzma_raw_buffer_encode(
                    filters, nil, content, content.count, buffer.baseAddress, &count, buffer.count)
                    == LZMA_OK
                {
                    filled = count
                }
            }
            guard count > 0 else { throw Refusal(.archiveLibrary, "xz cannot pack", now: nil) }
            return packed
        }
    }
}
