internal import MoultBasics

/// Refuses a zip archive that has more than its entries: an entry that the directory does not list, or lists twice, and bytes that
/// belong to no entry. libarchive finds the entries by the directory, and ignores everything else.
///
/// As in `unzip`, any bytes but an entry may come first, and a comment and NUL bytes may follow.
struct ZipCoverage {
    private let file: RawFile
    /// The end of the content of the last entry, and whether a descriptor, with its checksum and sizes, follows.
    private var place = 0
    private var hasDescriptor = false
    /// The names in the headers of the entries.
    private var names: [[UInt8]] = []

    /// The offset of the last end record.
    private let end: Int

    private static let endSize = 22
    private static let signature = Array("PK\u{3}\u{4}".utf8)
    private static let headerSize = 30
    private static let maxHeader = headerSize + 2 * 0xffff
    private static let maxDescriptor = 24
    private static let maxPadding = 1 << 20
    private static let maxDirectory = 1 << 20

    /// Finds the last end record, and shows libarchive the file up to its end: libarchive looks for it only in the last 16 KiB, and a
    /// comment and NUL bytes may follow.
    init(_ file: RawFile) throws {
        self.file = file
        let count = min(file.size, Self.endSize + 0xffff + Self.maxPadding)
        let tail = try file.bytes(at: file.size - count, count: count)
        let record = tail.withUnsafeBytes { tail in
            (0..<max(0, count - Self.endSize + 1)).last {
                tail.loadUnaligned(fromByteOffset: $0, as: UInt32.self).littleEndian == 0x0605_4b50
            }
        }
        end = file.size - count + (record ?? 0)
        file.end = record == nil ? file.size : end + Self.endSize
    }

    /// Checks the bytes between the last entry and the content of the next one, at this offset: only its header.
    mutating func begin(_ content: Int, isDirectory: Bool) throws {
        let isFirst = names.isEmpty
        let start = isFirst ? max(place, content - Self.maxHeader) : place
        guard content - start <= Self.maxHeader + Self.maxDescriptor + Self.maxPadding else { throw gap }
        let bytes = try file.bytes(at: start, count: max(0, content - start))
        guard let header = (0..<max(1, bytes.count - Self.headerSize + 1)).first(where: { Self.isHeader(bytes[$0...]) })
        else { throw gap }
        if isFirst { try checkFront(start + header) } else { try checkGap(bytes[..<header]) }
        // A few programs compress the empty content of a directory, which libarchive does not read.
        hasDescriptor = isDirectory || bytes[header + 6] & 8 != 0
        names.append(Array(bytes[(header + Self.headerSize)...].prefix(Self.number(bytes[...], header + 26))))
        place = content
    }

    mutating func end(_ place: Int) { self.place = place }

    /// Checks the directory and the end of the file.
    consuming func finish() throws {
        guard file.size - place <= Self.maxDirectory + Self.maxPadding + 0xffff else {
            throw ArchiveRefusal.damaged("it is larger than 1 MiB")
        }
        let bytes = try file.bytes(at: place, count: file.size - place)
        let directory = bytes.indices.first { Self.isRecord(bytes[$0...]) } ?? 0
        try checkGap(bytes[..<directory])
        var fields = LittleEndian(bytes[directory...])
        var listed: [[UInt8]] = []
        var isLarge = false
        while fields.starts(with: [1, 2]) {
            _ = try fields.take(28)
            let (name, extra, comment) = try (fields.number(2), fields.number(2), fields.number(2))
            _ = try fields.take(12)
            listed.append(Array(try fields.take(name)))
            _ = try fields.take(extra + comment)
        }
        let length = fields.position - directory
        if fields.starts(with: [6, 6]) {
            isLarge = true
            _ = try fields.take(4)
            _ = try fields.take(fields.number(8))
            guard fields.starts(with: [6, 7]) else { throw ArchiveRefusal.damaged("it has no zip64 locator") }
            _ = try fields.take(20)
        }
        // Other readers may use the last record, or look for the directory at the offset in the record.
        guard fields.starts(with: [5, 6]), place + fields.position == end else {
            throw ArchiveRefusal.damaged("it does not end where it should")
        }
        _ = try fields.take(10)
        let (count, size, offset) = try (fields.number(2), fields.number(4), fields.number(4))
        // A number that is too large for its field is all ones, and in the zip64 record.
        func agrees(_ number: Int, _ found: Int, _ width: Int) -> Bool {
            number == found || isLarge && number == 1 << (8 * width) - 1
        }
        guard agrees(count, listed.count, 2), listed.count <= names.count else {
            throw ArchiveRefusal.damaged("it lists an entry twice, or not all of them")
        }
        guard agrees(size, length, 4), agrees(offset, min(offset, place + directory), 4) else {
            throw ArchiveRefusal.damaged("the size or offset in its end record is wrong")
        }
        if offset < place + directory, Self.isRecord(try file.bytes(at: offset, count: 4)[...]) {
            throw ArchiveRefusal.damaged("it appears twice")
        }
        let comment = try fields.number(2)
        guard comment <= fields.rest.count else { throw ArchiveRefusal.cut }
        _ = try fields.take(comment)
        guard try file.isPadding(from: place + fields.position) else {
            throw ArchiveRefusal(.archiveGarbage, "unexpected data after the end of the zip archive")
        }
        func sorted(_ names: [[UInt8]]) -> [[UInt8]] { names.sorted { $0.lexicographicallyPrecedes($1) } }
        guard sorted(listed) == sorted(names) else {
            throw ArchiveRefusal.damaged("an entry does not match its local header")
        }
    }

    /// Refuses bytes in front of the first entry that begin with another one, even after the marker of a spanned archive.
    private func checkFront(_ count: Int) throws {
        var start = try file.bytes(at: 0, count: min(8, count))[...]
        for marker in ["PK00", "PK\u{7}\u{8}"] where start.starts(with: marker.utf8) { start = start.dropFirst(4) }
        guard !start.starts(with: Self.signature) else {
            throw ArchiveRefusal(.archiveGarbage, "the bytes at 0 do not belong to any entry of the zip archive")
        }
    }

    /// Refuses bytes after an entry other than its descriptor and NUL bytes for alignment: an entry does not fit into a descriptor.
    private func checkGap(_ bytes: ArraySlice<UInt8>) throws {
        let rest = bytes.prefix((bytes.lastIndex { $0 != 0 } ?? bytes.startIndex - 1) - bytes.startIndex + 1)
        guard rest.count <= (hasDescriptor ? Self.maxDescriptor : 0), bytes.count - rest.count <= Self.maxPadding else {
            throw gap
        }
    }

    private var gap: ArchiveRefusal {
        ArchiveRefusal(.archiveGarbage, "the bytes at \(place) do not belong to any entry of the zip archive")
    }

    /// Whether the bytes are the header of an entry, with its name and extra field.
    private static func isHeader(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count >= headerSize && bytes.starts(with: signature)
            && bytes.count == headerSize + number(bytes, bytes.startIndex + 26) + number(bytes, bytes.startIndex + 28)
    }

    /// Whether the bytes begin with an entry of the directory, or with the end of an empty one.
    private static func isRecord(_ bytes: ArraySlice<UInt8>) -> Bool {
        ["PK\u{1}\u{2}", "PK\u{6}\u{6}", "PK\u{5}\u{6}"].contains { bytes.starts(with: $0.utf8) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>, _ place: Int) -> Int {
        Int(bytes[place]) | Int(bytes[place + 1]) << 8
    }
}

extension LittleEndian {
    /// Whether a record of a zip archive with this type follows.
    fileprivate func starts(with type: [UInt8]) -> Bool { rest.starts(with: Array("PK".utf8) + type) }
}
