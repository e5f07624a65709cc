/// Proves that a zip file is nothing but its entries, one after the other, and the directory that lists them.
///
/// A zip reader starts from the directory at the end and skips whatever lies elsewhere; another reads the entries from
/// the front. Here both must see the same, every byte must belong to something, and no method but deflate is used.
struct ZipLayout {
    private let file: RawFile
    private let mostEntries: Int

    static func check(_ file: RawFile, mostEntries: Int) throws {
        let layout = ZipLayout(file: file, mostEntries: mostEntries)
        let directory = try layout.findDirectory()
        var place = 0
        for entry in try layout.entries(in: directory).sorted(by: { $0.offset < $1.offset }) {
            guard entry.offset == place else { throw Self.gap(at: place) }
            place = try layout.endOfEntry(entry)
        }
        guard place == directory.range.lowerBound else { throw Self.gap(at: place) }
    }

    private struct Directory {
        let count: Int
        let range: Range<Int>
    }

    /// What the directory says of an entry.
    private struct Entry {
        let flags: Int
        let method: Int
        let checksum: Int
        var packedSize: Int
        var size: Int
        var offset: Int
        let name: ArraySlice<UInt8>

        /// Bit 3: sizes and checksum follow the content, because the archive was written to a pipe.
        var hasDescriptor: Bool { flags & 8 != 0 }
    }

    private static func gap(at place: Int) -> Refusal {
        Refusal(.archiveGarbage, "the bytes at \(place) belong to no entry of the zip archive")
    }

    // All ones stand for a number that is too large for its field: zip64 has it elsewhere.
    private static let elsewhere16 = 0xffff
    private static let elsewhere = 0xffff_ffff

    private func findDirectory() throws -> Directory {
        let place = file.size - 22
        guard place >= 0 else { throw Refusal.cut }
        var end = LittleEndian(try file.bytes(at: place, count: 22)[...])
        guard try end.take(4).elementsEqual("PK\u{5}\u{6}".utf8) else {
            throw Refusal(
                .archiveCut,
                "it does not end as a zip archive does: it is cut, or has a comment or other bytes behind it")
        }
        let (disk, first, here, count) = try (end.number(2), end.number(2), end.number(2), end.number(2))
        let (length, start, comment) = try (end.number(4), end.number(4), end.number(2))
        guard disk == 0, first == 0, here == count, comment == 0 else {
            throw Refusal.damaged("it is a part of several, or has a comment")
        }
        if let large = try largeDirectory(before: place) {
            guard [large.count, Self.elsewhere16].contains(count),
                [large.range.count, Self.elsewhere].contains(length),
                [large.range.lowerBound, Self.elsewhere].contains(start)
            else { throw Refusal.damaged("its two ends contradict each other") }
            return large
        }
        return try directory(count: count, start: start, length: length, end: place)
    }

    /// zip64's own end record and the locator that points to it, in front of the end of old.
    private func largeDirectory(before place: Int) throws -> Directory? {
        let (recordSize, locatorSize) = (56, 20)
        guard place >= locatorSize else { return nil }
        var locator = LittleEndian(try file.bytes(at: place - locatorSize, count: locatorSize)[...])
        guard try locator.take(4).elementsEqual("PK\u{6}\u{7}".utf8) else { return nil }
        let recordPlace = place - locatorSize - recordSize
        guard try locator.number(4) == 0, try locator.number(8) == recordPlace, recordPlace >= 0 else {
            throw Self.gap(at: place)
        }
        var record = LittleEndian(try file.bytes(at: recordPlace, count: recordSize)[...])
        guard try record.take(4).elementsEqual("PK\u{6}\u{6}".utf8), try record.number(8) == recordSize - 12 else {
            throw Refusal.damaged("its zip64 record is of another size")
        }
        _ = try record.take(4 + 8)
        let (here, count, length, start) = try (record.number(8), record.number(8), record.number(8), record.number(8))
        guard here == count else { throw Refusal.damaged("it is a part of several") }
        return try directory(count: count, start: start, length: length, end: recordPlace)
    }

    private func directory(count: Int, start: Int, length: Int, end: Int) throws -> Directory {
        guard count <= mostEntries else {
            throw Refusal(.archiveUndeclared, "it has \(count) entries, which is more than were declared")
        }
        guard start <= end, length == end - start else { throw Self.gap(at: min(start, end)) }
        // Far more than the declared entries can need.
        guard length <= 1 << 20 else { throw Refusal.damaged("it is larger than 1 MiB") }
        return Directory(count: count, range: start..<end)
    }

    private func entries(in directory: Directory) throws -> [Entry] {
        var fields = LittleEndian(try file.bytes(at: directory.range.lowerBound, count: directory.range.count)[...])
        let entries = try (0..<directory.count).map { _ in try entry(&fields) }
        guard fields.isAtEnd else { throw Refusal.damaged("there are bytes behind its last entry") }
        return entries
    }

    private func entry(_ fields: inout LittleEndian) throws -> Entry {
        guard try fields.take(4).elementsEqual("PK\u{1}\u{2}".utf8) else { throw Refusal.damaged("no entry begins") }
        _ = try fields.take(4)
        let (flags, method) = try (fields.number(2), fields.number(2))
        _ = try fields.take(4)
        let (checksum, packedSize, size) = try (fields.number(4), fields.number(4), fields.number(4))
        let (nameSize, extraSize, commentSize) = try (fields.number(2), fields.number(2), fields.number(2))
        _ = try fields.take(8)
        let offset = try fields.number(4)
        var entry = Entry(
            flags: flags, method: method, checksum: checksum, packedSize: packedSize, size: size, offset: offset,
            name: try fields.take(nameSize))
        try readLargeNumbers(of: &entry, from: fields.take(extraSize))
        _ = try fields.take(commentSize)

        let name = printable(String(decoding: entry.name, as: UTF8.self))
        guard flags & 1 == 0 else {
            throw Refusal(
                .archiveEntryKind, "its entry “\(name)” is encrypted", now: "Pack it again without a password.")
        }
        guard method == 0 || method == 8 else {
            throw Refusal(
                .archiveKind, "its entry “\(name)” is compressed by method \(method) instead of deflate",
                now: "Pack it again with zip's usual compression.")
        }
        return entry
    }

    /// Takes the numbers that did not fit into their fields from zip64's extra field.
    private func readLargeNumbers(of entry: inout Entry, from extra: ArraySlice<UInt8>) throws {
        var fields = LittleEndian(extra)
        while !fields.isAtEnd {
            let (id, length) = try (fields.number(2), fields.number(2))
            var field = LittleEndian(try fields.take(length))
            guard id == 1 else { continue }
            if entry.size == Self.elsewhere { entry.size = try field.number(8) }
            if entry.packedSize == Self.elsewhere { entry.packedSize = try field.number(8) }
            if entry.offset == Self.elsewhere { entry.offset = try field.number(8) }
        }
    }

    /// Compares an entry's own header with the directory and returns where the entry ends.
    private func endOfEntry(_ entry: Entry) throws -> Int {
        let headerSize = 30
        var header = LittleEndian(try file.bytes(at: entry.offset, count: headerSize)[...])
        guard try header.take(4).elementsEqual("PK\u{3}\u{4}".utf8) else { throw Self.gap(at: entry.offset) }
        _ = try header.take(2)
        let (flags, method) = try (header.number(2), header.number(2))
        _ = try header.take(4)
        let (checksum, packedSize, size) = try (header.number(4), header.number(4), header.number(4))
        let (nameSize, extraSize) = try (header.number(2), header.number(2))
        let name = try file.bytes(at: entry.offset + headerSize, count: nameSize)
        // With a descriptor behind the content, these are not known yet or say so.
        let isSame =
            entry.hasDescriptor
            || checksum == entry.checksum && [entry.packedSize, Self.elsewhere].contains(packedSize)
                && [entry.size, Self.elsewhere].contains(size)
        guard isSame, flags & 9 == entry.flags & 9, method == entry.method, name.elementsEqual(entry.name) else {
            throw Refusal.damaged("an entry's own header says something else than the directory")
        }
        let content = entry.offset + headerSize + nameSize + extraSize
        guard content <= file.size, entry.packedSize <= file.size - content else { throw Refusal.cut }
        let end = content + entry.packedSize
        return entry.hasDescriptor ? try endOfDescriptor(entry, at: end) : end
    }

    /// Checksum and sizes behind the content: with or without a signature, in 4 or 8 bytes.
    private func endOfDescriptor(_ entry: Entry, at place: Int) throws -> Int {
        for width in [4, 8] {
            let numbers = Self.bytes(entry.packedSize, width) + Self.bytes(entry.size, width)
            for signature in [Array("PK\u{7}\u{8}".utf8), []] {
                let expected = signature + Self.bytes(entry.checksum, 4) + numbers
                guard place + expected.count <= file.size else { continue }
                if try file.bytes(at: place, count: expected.count) == expected { return place + expected.count }
            }
        }
        throw Self.gap(at: place)
    }

    private static func bytes(_ number: Int, _ width: Int) -> [UInt8] {
        (0..<width).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
