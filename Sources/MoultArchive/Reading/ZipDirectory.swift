internal import MoultBasics

/// The central directory of a zip archive, found from the end of the file.
///
/// An archive comment is accepted, and so are bytes in front of the archive, as in self-extracting archives. Offsets count from
/// the beginning of the file (after `zip -A`) or from the end of those bytes; the position of the directory shows which of the
/// two applies.
struct ZipDirectory {
    /// An entry as the directory describes it, with its offset in the file.
    struct Entry {
        let flags: Int
        let method: Int
        let checksum: Int
        let attributes: Int
        let name: ArraySlice<UInt8>
        var sizes: ZipSizes
        var offset: Int

        /// Bit 3: size and checksum follow the content, because the archive was written to a pipe.
        var hasDescriptor: Bool { flags & 8 != 0 }
    }

    let entries: [Entry]
    /// The offset of the directory in the file.
    let start: Int

    /// The maximum size of the directory, far more than the declared entries can need.
    private static let maxBytes = 1 << 20
    private static let maxComment = 0xffff
    private static let maxPadding = 1 << 20
    private static let endSize = 22
    private static let entrySignature = Array("PK\u{1}\u{2}".utf8)

    init(of file: RawFile, maxEntries: Int) throws {
        let end = try Self.findEnd(in: file)
        guard end.count <= maxEntries else {
            throw ArchiveRefusal(.archiveUndeclared, "it has \(end.count) entries, more than are declared")
        }
        guard end.length <= Self.maxBytes else { throw ArchiveRefusal.damaged("it is larger than 1 MiB") }
        start = end.place - end.length
        let prefix = start - end.start
        guard start >= 0, prefix >= 0 else {
            throw ArchiveRefusal.damaged("the size or offset in its end record is wrong")
        }
        if let locator = end.locator, locator != end.place - prefix {
            throw ArchiveRefusal.damaged("its zip64 locator points to the wrong place")
        }
        // Some readers look for a directory at the offset in the end record, ignoring the bytes in front of the
        // archive.
        if prefix > 0, try Self.isDirectory(at: end.start, in: file) {
            throw ArchiveRefusal.damaged("it appears twice")
        }
        var fields = LittleEndian(try file.bytes(at: start, count: end.length)[...])
        entries = try (0..<end.count).map { _ in
            var entry = try Self.entry(&fields)
            guard entry.offset <= file.size else {
                throw ArchiveRefusal.damaged("an entry starts after the end of the file")
            }
            entry.offset += prefix
            return entry
        }
        guard fields.isAtEnd else { throw ArchiveRefusal.damaged("unexpected data after its last entry") }
    }

    private static func isDirectory(at place: Int, in file: RawFile) throws -> Bool {
        try file.bytes(at: place, count: min(4, file.size - place)).elementsEqual(entrySignature)
    }

    /// The end record: the number of entries, and the length and start of the directory.
    private struct End {
        let count: Int
        let length: Int
        let start: Int
        /// The offset of the record itself, which is the end of the directory.
        let place: Int
        /// The offset of the zip64 record, according to its locator.
        var locator: Int?
    }

    /// Finds the end record by the last signature in the file; only NUL bytes may follow its comment. Other readers
    /// also use the last signature, or the last one that is followed by a comment of the correct length. Here both must
    /// be the same record, so a comment cannot hide a second directory.
    private static func findEnd(in file: RawFile) throws -> End {
        let padding = try file.zerosAtEnd(atMost: maxPadding)
        // The record itself may end with NUL bytes; its signature does not.
        let count = min(file.size - padding, endSize + maxComment)
        let searched = try file.bytes(at: file.size - padding - count, count: count)
        guard let index = lastEnd(in: searched) else {
            let start = try file.bytes(at: 0, count: min(4, file.size))
            guard start.starts(with: "PK".utf8) else { throw NotThisFormat() }
            throw ArchiveRefusal(
                .archiveCut, "it does not end as a zip archive does: a part is missing, or other bytes follow")
        }
        let place = file.size - padding - count + index
        var fields = LittleEndian(try file.bytes(at: place, count: endSize)[4...])
        let (disk, first, here, entries) = try (fields.number(2), fields.number(2), fields.number(2), fields.number(2))
        let (length, start, comment) = try (fields.number(4), fields.number(4), fields.number(2))
        let end = place + endSize + comment
        guard end <= file.size else { throw ArchiveRefusal.cut }
        guard end >= file.size - padding else {
            throw ArchiveRefusal(.archiveGarbage, "unexpected data after the end of the zip archive")
        }
        guard disk == 0, first == 0, here == entries else {
            throw ArchiveRefusal.damaged("the archive is split into several parts")
        }
        guard let large = try zip64End(before: place, in: file) else {
            return End(count: entries, length: length, start: start, place: place)
        }
        guard [large.count, 0xffff].contains(entries), [large.length, ZipSizes.elsewhere].contains(length),
            [large.start, ZipSizes.elsewhere].contains(start)
        else { throw ArchiveRefusal.damaged("its two end records contradict each other") }
        return large
    }

    private static func lastEnd(in bytes: [UInt8]) -> Int? {
        bytes.withUnsafeBytes { bytes in
            (0..<max(0, bytes.count - 3)).last {
                bytes.loadUnaligned(fromByteOffset: $0, as: UInt32.self).littleEndian == 0x0605_4b50
            }
        }
    }

    /// Returns the zip64 end record, which is in front of the old end record together with the locator that points to it; nil
    /// if the archive has none.
    private static func zip64End(before place: Int, in file: RawFile) throws -> End? {
        let (recordSize, locatorSize) = (56, 20)
        guard place >= locatorSize else { return nil }
        var locator = LittleEndian(try file.bytes(at: place - locatorSize, count: locatorSize)[...])
        guard try locator.take(4).elementsEqual("PK\u{6}\u{7}".utf8) else { return nil }
        guard try locator.number(4) == 0 else {
            throw ArchiveRefusal.damaged("the archive is split into several parts")
        }
        let target = try locator.number(8)
        let recordPlace = place - locatorSize - recordSize
        guard recordPlace >= 0 else { throw ArchiveRefusal.damaged("its zip64 locator points to the wrong place") }
        var record = LittleEndian(try file.bytes(at: recordPlace, count: recordSize)[...])
        guard try record.take(4).elementsEqual("PK\u{6}\u{6}".utf8), try record.number(8) == recordSize - 12 else {
            throw ArchiveRefusal.damaged("its zip64 record has an unexpected size")
        }
        _ = try record.take(4 + 8)
        let (here, count, length, start) = try (record.number(8), record.number(8), record.number(8), record.number(8))
        guard here == count else { throw ArchiveRefusal.damaged("the archive is split into several parts") }
        return End(count: count, length: length, start: start, place: recordPlace, locator: target)
    }

    private static func entry(_ fields: inout LittleEndian) throws -> Entry {
        guard try fields.take(4).elementsEqual(entrySignature) else {
            throw ArchiveRefusal.damaged("an entry has no header")
        }
        _ = try fields.take(4)
        let (flags, method) = try (fields.number(2), fields.number(2))
        _ = try fields.take(4)
        let checksum = try fields.number(4)
        let sizes = try ZipSizes(packed: fields.number(4), plain: fields.number(4))
        let (nameSize, extraSize, commentSize) = try (fields.number(2), fields.number(2), fields.number(2))
        _ = try fields.take(4)
        let (attributes, offset) = try (fields.number(4), fields.number(4))
        var entry = Entry(
            flags: flags, method: method, checksum: checksum, attributes: attributes, name: try fields.take(nameSize),
            sizes: sizes, offset: offset)
        var large = try ZipSizes.zip64Field(in: fields.take(extraSize))
        try entry.sizes.take(from: &large)
        if entry.offset == ZipSizes.elsewhere, !large.isAtEnd { entry.offset = try large.number(8) }
        _ = try fields.take(commentSize)
        return entry
    }
}

/// The compressed and uncompressed size of an entry.
struct ZipSizes: Equatable {
    var packed: Int
    var plain: Int

    /// All ones mean that the number is too large for its field and is in the zip64 extra field.
    static let elsewhere = 0xffff_ffff

    /// Returns the zip64 extra field, or an empty cursor. Padding, which is not a field, ends the search.
    static func zip64Field(in extra: ArraySlice<UInt8>) throws -> LittleEndian {
        var fields = LittleEndian(extra)
        while fields.remaining >= 4 {
            let (id, length) = try (fields.number(2), fields.number(2))
            guard length <= fields.remaining else { break }
            let field = try fields.take(length)
            if id == 1 { return LittleEndian(field) }
        }
        return LittleEndian([])
    }

    /// Replaces the sizes that did not fit into their fields by those in the zip64 extra field, which has the uncompressed size
    /// first.
    mutating func take(from large: inout LittleEndian) throws {
        if plain == Self.elsewhere, !large.isAtEnd { plain = try large.number(8) }
        if packed == Self.elsewhere, !large.isAtEnd { packed = try large.number(8) }
    }
}
