internal import MoultBasics
package import MoultFiles

/// The list of frames at the end of a patch, in zstd's seekable format: a skippable frame that other tools ignore.
package enum SeekTable {
    private static let skippableMagic = 0x184d_2a5e
    private static let magic = 0x8f92_eab1
    private static let headerSize = 8
    private static let entrySize = 8
    private static let footerSize = 9

    /// The maximum number of frames, so that the table stays small in memory; moult creates at most 4,096.
    private static let maxFrames = 1 << 20

    static func size(frames count: Int) -> Int { headerSize + count * entrySize + footerSize }

    static func encode(_ frames: [Frame]) -> [UInt8] {
        var bytes: [UInt8] = []
        func put(_ number: Int) { bytes += (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) } }
        put(skippableMagic)
        put(size(frames: frames.count) - headerSize)
        for frame in frames {
            put(frame.packedSize)
            put(frame.contentSize)
        }
        put(frames.count)
        // The table has no checksums, because each frame has its own.
        bytes.append(0)
        put(magic)
        return bytes
    }

    /// Reads the table of a file; nil if the file does not end with one.
    package static func read(_ file: borrowing Descriptor) throws -> [Frame]? {
        let size = try file.facts().size
        let path = file.path
        return try reading(path) {
            guard size >= headerSize + footerSize else { return nil }
            var footer = LittleEndian(try bytes(of: file, at: size - footerSize, count: footerSize)[...])
            let (count, descriptor, found) = try (footer.number(4), footer.byte(), footer.number(4))
            guard found == magic else { return nil }
            // These bits are reserved for future formats. The highest bit means that each entry has a checksum.
            guard descriptor & 0x7c == 0 else { return nil }
            let width = descriptor & 0x80 == 0 ? entrySize : entrySize + 4
            let tableSize = headerSize + count * width + footerSize
            guard count <= maxFrames, tableSize <= size else {
                throw ArchiveRefusal(.archiveFrames, "its seek table lists \(count) frames")
            }
            return try read(bytes(of: file, at: size - tableSize, count: tableSize), count, width, size - tableSize)
        }
    }

    private static func read(_ table: [UInt8], _ count: Int, _ width: Int, _ place: Int) throws -> [Frame] {
        var fields = LittleEndian(table[...])
        guard try fields.number(4) == skippableMagic, try fields.number(4) == table.count - headerSize else {
            throw ArchiveRefusal(.archiveFrames, "its seek table does not begin where it should")
        }
        let frames = try (0..<count).map { _ in
            let frame = Frame(packedSize: try fields.number(4), contentSize: try fields.number(4))
            _ = try fields.take(width - entrySize)
            return frame
        }
        let sum = frames.reduce(0) { $0 + $1.packedSize }
        guard sum == place else {
            throw ArchiveRefusal(
                .archiveFrames, "its seek table lists \(sum) bytes of frames, but the file has \(place)")
        }
        return frames
    }

    private static func bytes(of file: borrowing Descriptor, at offset: Int, count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try bytes.withUnsafeMutableBytes { try fill($0, from: file, at: offset) }
        return bytes
    }
}

/// Fills the buffer from the file; throws if the file is too short.
func fill(_ buffer: UnsafeMutableRawBufferPointer, from file: borrowing Descriptor, at offset: Int) throws {
    guard try file.fill(buffer, at: offset) == buffer.count else { throw ArchiveRefusal.cut }
}

/// The compressed size and the content size of an independently compressed part of a patch.
package struct Frame: Hashable, Sendable {
    package let packedSize: Int
    package let contentSize: Int
}
