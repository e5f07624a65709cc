internal import MoultBasics

/// Verifies that a zip archive consists of its listed entries, and finds the content of each.
///
/// Every entry's header must match the directory, entries must not overlap, and only NUL bytes for alignment may be between
/// entries and in front of the directory. Therefore, readers that start from the directory and readers that go from entry to
/// entry find the same content. The bytes in front of the first entry may be anything but an entry: readers that start from the
/// directory ignore them, and a reader that starts at the front finds nothing to unpack at the beginning of the file. An entry
/// that such a reader might find further inside cannot harm a store, because every member is verified by its digest in the
/// manifest.
struct ZipLayout {
    struct Entry {
        let header: ArchiveEntry
        let isDeflated: Bool
        let checksum: Int
        let size: Int
        /// The range of the compressed content in the file.
        let content: Range<Int>
    }

    /// Sorted by their position in the file.
    let entries: [Entry]

    private static let headerSize = 30
    private static let signature = Array("PK\u{3}\u{4}".utf8)
    /// Alignment needs a few kilobytes at most.
    private static let maxPadding = 1 << 20

    init(of file: RawFile, maxEntries: Int) throws {
        let directory = try ZipDirectory(of: file, maxEntries: maxEntries)
        let listed = directory.entries.sorted { $0.offset < $1.offset }
        var place = listed.first?.offset ?? directory.start
        try Self.checkPrefix(place, in: file)
        entries = try listed.map { entry in
            try Self.checkPadding(from: place, to: entry.offset, in: file)
            let content = try Self.content(of: entry, in: file)
            place = entry.hasDescriptor ? try Self.endOfDescriptor(of: entry, content, in: file) : content.upperBound
            return try Self.checked(entry, content)
        }
        try Self.checkPadding(from: place, to: directory.start, in: file)
    }

    /// Refuses bytes in front of the first entry that begin with an entry, even after the marker of a spanned archive.
    private static func checkPrefix(_ count: Int, in file: RawFile) throws {
        var start = try file.bytes(at: 0, count: min(8, count))[...]
        for marker in ["PK00", "PK\u{7}\u{8}"] where start.starts(with: marker.utf8) { start = start.dropFirst(4) }
        guard !start.starts(with: signature) else { throw gap(at: 0) }
    }

    private static func checkPadding(from start: Int, to end: Int, in file: RawFile) throws {
        guard start <= end else { throw ArchiveRefusal.damaged("the entry at \(end) overlaps the one before it") }
        guard end - start <= maxPadding, try file.bytes(at: start, count: end - start).allSatisfy({ $0 == 0 }) else {
            throw gap(at: start)
        }
    }

    private static func gap(at place: Int) -> ArchiveRefusal {
        ArchiveRefusal(.archiveGarbage, "the bytes at \(place) do not belong to any entry of the zip archive")
    }

    /// Compares an entry's header with the directory and returns the range of its compressed content.
    private static func content(of entry: ZipDirectory.Entry, in file: RawFile) throws -> Range<Int> {
        var header = LittleEndian(try file.bytes(at: entry.offset, count: headerSize)[...])
        guard try header.take(4).elementsEqual(signature) else { throw gap(at: entry.offset) }
        _ = try header.take(2)
        let (flags, method) = try (header.number(2), header.number(2))
        _ = try header.take(4)
        let checksum = try header.number(4)
        var sizes = try ZipSizes(packed: header.number(4), plain: header.number(4))
        let (nameSize, extraSize) = try (header.number(2), header.number(2))
        let name = try file.bytes(at: entry.offset + headerSize, count: nameSize)
        let extra = try file.bytes(at: entry.offset + headerSize + nameSize, count: extraSize)
        var large = try ZipSizes.zip64Field(in: extra[...])
        try sizes.take(from: &large)
        // If a descriptor follows the content, the values may be missing here.
        func agrees(_ own: Int, _ listed: Int) -> Bool {
            own == listed || entry.hasDescriptor && (own == 0 || own == ZipSizes.elsewhere)
        }
        guard flags & meaningfulFlags == entry.flags & meaningfulFlags, method == entry.method,
            name.elementsEqual(entry.name), agrees(checksum, entry.checksum),
            agrees(sizes.packed, entry.sizes.packed), agrees(sizes.plain, entry.sizes.plain)
        else { throw ArchiveRefusal.damaged("an entry does not match its local header") }
        let start = entry.offset + headerSize + nameSize + extraSize
        guard entry.sizes.packed <= file.size - start else { throw ArchiveRefusal.cut }
        return start..<start + entry.sizes.packed
    }

    /// The flags for encryption, a descriptor, patched data, strong encryption, and masked headers.
    private static let meaningfulFlags = 0x2069
    private static let encryptionFlags = 0x2041

    /// Returns the end of the descriptor after the content. The descriptor has the checksum and the sizes, with or without a
    /// signature; each size has 4 or 8 bytes.
    private static func endOfDescriptor(
        of entry: ZipDirectory.Entry, _ content: Range<Int>, in file: RawFile
    ) throws -> Int {
        let place = content.upperBound
        for width in [4, 8] {
            let numbers = bytes(entry.sizes.packed, width) + bytes(entry.sizes.plain, width)
            for signature in [Array("PK\u{7}\u{8}".utf8), []] {
                let expected = signature + bytes(entry.checksum, 4) + numbers
                guard place + expected.count <= file.size else { continue }
                if try file.bytes(at: place, count: expected.count) == expected { return place + expected.count }
            }
        }
        throw gap(at: place)
    }

    private static func bytes(_ number: Int, _ width: Int) -> [UInt8] {
        (0..<width).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    /// Returns the entry; refuses encryption, methods other than plain storage and deflate, and directories with content.
    private static func checked(_ entry: ZipDirectory.Entry, _ content: Range<Int>) throws -> Entry {
        let name = String(validating: entry.name, as: UTF8.self)
        let shown = printable(String(decoding: entry.name, as: UTF8.self))
        guard entry.flags & encryptionFlags == 0 else {
            throw ArchiveRefusal(
                .archiveEntryKind, "its entry \"\(shown)\" is encrypted", now: .withoutPassword)
        }
        guard entry.method == 0 || entry.method == 8 else {
            throw ArchiveRefusal(
                .archiveKind, "its entry \"\(shown)\" is compressed by method \(entry.method) instead of deflate",
                now: .deflate)
        }
        let kind = kind(of: entry, isNamedAsDirectory: entry.name.last == UInt8(ascii: "/"))
        if case .directory = kind, entry.sizes.plain != 0 {
            throw ArchiveRefusal.damaged("the entry of the directory \"\(shown)\" has content")
        }
        return Entry(
            header: ArchiveEntry(name: name, kind: kind, size: entry.sizes.plain), isDeflated: entry.method == 8,
            checksum: entry.checksum, size: entry.sizes.plain, content: content)
    }

    /// Determines the kind of an entry. The upper half of the attributes is a Unix mode or zero; the lower half has the MS-DOS
    /// flag for directories.
    private static func kind(of entry: ZipDirectory.Entry, isNamedAsDirectory: Bool) -> ArchiveEntry.Kind {
        let mode = entry.attributes >> 16
        if mode & 0o170000 == 0 { return isNamedAsDirectory || entry.attributes & 0x10 != 0 ? .directory : .file }
        let kind = ArchiveEntry.Kind(mode: mode)
        if case .file = kind, isNamedAsDirectory { return .directory }
        return kind
    }
}
