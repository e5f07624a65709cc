internal import CZlib
internal import MoultLibc

/// Writes a zip file in one pass: sizes and checksums follow each member's content, and the directory comes last.
final class ZipWriter {
    private let level: Int
    private let output: ArchiveOutput
    private let time: [UInt8]
    private var entries: [Entry] = []
    private var position = 0
    // State of the member that is being written.
    private var encoder: DeflateEncoder?
    private var checksum: UInt = 0
    private var contentStart = 0

    private struct Entry {
        let name: [UInt8]
        let size: Int
        let offset: Int
        var checksum: UInt = 0
        var packedSize = 0

        /// Whether the sizes need 8 bytes. Deflate makes incompressible content slightly larger, so this starts below 4
        /// GiB.
        var isLarge: Bool { size >= 0xf000_0000 }
    }

    private static let elsewhere = 0xffff_ffff
    /// Returns version 2.0, or 4.5 for zip64.
    private static func version(_ isLarge: Bool) -> [UInt8] { [isLarge ? 45 : 20, 0] }

    init(modified: Int, level: Int, _ output: @escaping ArchiveOutput) {
        (self.level, self.output, time) = (level, output, Self.dosTime(modified))
    }

    /// Starts a member. Its content is passed to `write`, then `end` is called.
    func begin(_ name: String, size: Int) throws {
        let entry = Entry(name: Array(name.utf8), size: size, offset: position)
        try put(header(of: entry))
        entries.append(entry)
        checksum = crc32_z(0, nil, 0)
        encoder = try DeflateEncoder(.bare, level: level) { [unowned self] in
            position += $0.count
            try output($0)
        }
        contentStart = position
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        checksum = crc32_z(checksum, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        try encoder?.encode(bytes)
    }

    func end() throws {
        try encoder?.finish()
        let last = entries.count - 1
        entries[last].checksum = checksum
        entries[last].packedSize = position - contentStart
        try put(descriptor(of: entries[last]))
    }

    /// Writes the directory and the end of the archive, with zip64 records if numbers are too large.
    func finish() throws {
        let start = position
        for entry in entries { try put(directoryEntry(of: entry)) }
        let size = position - start
        if start + size >= Self.elsewhere { try put(zip64End(start: start, size: size)) }
        try put(
            Array("PK\u{5}\u{6}".utf8) + Self.bytes(0, 4) + Self.bytes(entries.count, 2)
                + Self.bytes(entries.count, 2) + Self.bytes(min(size, Self.elsewhere), 4)
                + Self.bytes(min(start, Self.elsewhere), 4) + Self.bytes(0, 2))
    }

    /// Returns the zip64 end record and the locator that points to it.
    private func zip64End(start: Int, size: Int) -> [UInt8] {
        let record =
            Array("PK\u{6}\u{6}".utf8) + Self.bytes(44, 8) + Self.version(true) + Self.version(true)
            + Self.bytes(0, 8) + Self.bytes(entries.count, 8) + Self.bytes(entries.count, 8)
            + Self.bytes(size, 8) + Self.bytes(start, 8)
        return record + Array("PK\u{6}\u{7}".utf8) + Self.bytes(0, 4) + Self.bytes(position, 8) + Self.bytes(1, 4)
    }

    private func put(_ bytes: [UInt8]) throws {
        position += bytes.count
        try bytes.withUnsafeBytes(output)
    }

    /// Returns the entry's header, without the sizes and the checksum: those follow the content (bit 3).
    private func header(of entry: Entry) -> [UInt8] {
        // Only the zip64 field shows that the numbers after the content have 8 bytes.
        let extra = entry.isLarge ? Self.bytes(1, 2) + Self.bytes(16, 2) + Self.bytes(0, 16) : []
        let sizes = entry.isLarge ? Self.bytes(Self.elsewhere, 4) + Self.bytes(Self.elsewhere, 4) : Self.bytes(0, 8)
        return Array("PK\u{3}\u{4}".utf8) + Self.version(entry.isLarge) + Self.bytes(8, 2) + Self.bytes(8, 2) + time
            + Self.bytes(0, 4) + sizes + Self.bytes(entry.name.count, 2) + Self.bytes(extra.count, 2) + entry.name
            + extra
    }

    private func descriptor(of entry: Entry) -> [UInt8] {
        let width = entry.isLarge ? 8 : 4
        return Array("PK\u{7}\u{8}".utf8) + Self.bytes(Int(entry.checksum), 4) + Self.bytes(entry.packedSize, width)
            + Self.bytes(entry.size, width)
    }

    private func directoryEntry(of entry: Entry) -> [UInt8] {
        var large: [UInt8] = []
        if entry.isLarge { large += Self.bytes(entry.size, 8) + Self.bytes(entry.packedSize, 8) }
        if entry.offset >= Self.elsewhere { large += Self.bytes(entry.offset, 8) }
        let extra = large.isEmpty ? [] : Self.bytes(1, 2) + Self.bytes(large.count, 2) + large
        // The 3 means that the entry was made on Unix, so that readers use the mode below: a plain file, rw-r--r--.
        return Array("PK\u{1}\u{2}".utf8) + [Self.version(!large.isEmpty)[0], 3] + Self.version(!large.isEmpty)
            + Self.bytes(8, 2) + Self.bytes(8, 2) + time + Self.bytes(Int(entry.checksum), 4)
            + Self.bytes(entry.isLarge ? Self.elsewhere : entry.packedSize, 4)
            + Self.bytes(entry.isLarge ? Self.elsewhere : entry.size, 4) + Self.bytes(entry.name.count, 2)
            + Self.bytes(extra.count, 2) + Self.bytes(0, 6) + Self.bytes(0o100644 << 16, 4)
            + Self.bytes(min(entry.offset, Self.elsewhere), 4) + entry.name + extra
    }

    private static func bytes(_ number: Int, _ width: Int) -> [UInt8] {
        (0..<width).map { $0 < 8 ? UInt8(truncatingIfNeeded: number >> ($0 * 8)) : 0 }
    }

    /// Returns the time in MS-DOS format: accurate to two seconds, from 1980 to 2107, here in UTC.
    private static func dosTime(_ seconds: Int) -> [UInt8] {
        // 1980-01-01 and the last moment of 2107.
        var clamped = time_t(min(max(seconds, 315_532_800), 4_354_819_198))
        var fields = tm()
        gmtime_r(&clamped, &fields)
        let time = fields.tm_hour << 11 | fields.tm_min << 5 | fields.tm_sec / 2
        let date = (fields.tm_year - 80) << 9 | (fields.tm_mon + 1) << 5 | fields.tm_mday
        return bytes(Int(time), 2) + bytes(Int(date), 2)
    }
}
