/// A cursor over a 7z header, for the part that describes packed streams.
struct SevenZipHeader {
    static let header: UInt8 = 0x01
    static let encodedHeader: UInt8 = 0x17
    private static let end = 0x00
    private static let mainStreams = 0x04
    private static let files = 0x05
    private static let packInfo = 0x06
    private static let unpackInfo = 0x07
    private static let packSizes = 0x09
    private static let digests = 0x0a
    private static let folders = 0x0b
    private static let unpackSizes = 0x0c

    /// More streams than any bundle needs.
    private static let most = 1 << 16

    private var fields: LittleEndian

    init(_ bytes: [UInt8]) { fields = LittleEndian(bytes[...]) }

    /// Where packed streams lie, counted from the start header's end, and how each is packed.
    struct Streams {
        let packed: Range<Int>
        let coders: [LzmaCoder]
        let sizes: [Int]
    }

    mutating func byte() throws -> UInt8 { try fields.byte() }

    /// The streams of an archive's content; nil if it has no content.
    mutating func optionalStreams() throws -> Streams? {
        switch try number() {
        case Self.mainStreams: try streams()
        case Self.files, Self.end: nil
        default: throw Refusal.damaged("it has fields that are not known here")
        }
    }

    mutating func streams() throws -> Streams {
        try expect(Self.packInfo)
        let start = try number()
        let count = try count()
        try expect(Self.packSizes)
        var size = 0
        for _ in 0..<count {
            let (sum, overflow) = size.addingReportingOverflow(try number())
            guard !overflow else { throw Refusal.damaged("its sizes are too large") }
            size = sum
        }
        try skipDigestsToEnd(count)

        try expect(Self.unpackInfo)
        try expect(Self.folders)
        // One stream a folder: no filter in front of the compression, no streams woven into each other.
        guard try self.count() == count, try byte() == 0 else { throw Self.notPlain }
        let coders = try (0..<count).map { _ in try coder() }
        try expect(Self.unpackSizes)
        let sizes = try (0..<count).map { _ in try number() }
        try skipDigestsToEnd(count)

        let (end, overflow) = start.addingReportingOverflow(size)
        guard !overflow else { throw Refusal.damaged("its sizes are too large") }
        return Streams(packed: start..<end, coders: coders, sizes: sizes)
    }

    private static var notPlain: Refusal {
        Refusal(
            .archiveKind, "its content is not packed by LZMA alone",
            now: "Pack it again with “7z a -m0=lzma2”, without filters and passwords.")
    }

    private mutating func coder() throws -> LzmaCoder {
        guard try count() == 1 else { throw Self.notPlain }
        let flags = try byte()
        guard flags & 0xd0 == 0 else { throw Self.notPlain }
        let id = Array(try fields.take(Int(flags & 0x0f)))
        let properties = flags & 0x20 == 0 ? [] : Array(try fields.take(try number()))
        switch id {
        case [0x00]: return try LzmaCoder(method: .copy, properties: properties)
        case [0x03, 0x01, 0x01]: return try LzmaCoder(method: .lzma1, properties: properties)
        case [0x21]: return try LzmaCoder(method: .lzma2, properties: properties)
        default: throw Self.notPlain
        }
    }

    private mutating func skipDigestsToEnd(_ count: Int) throws {
        var id = try number()
        if id == Self.digests {
            let isEach = try byte() != 0
            let bits = isEach ? [] : try fields.take((count + 7) / 8)
            let digests = isEach ? count : bits.reduce(0) { $0 + $1.nonzeroBitCount }
            _ = try fields.take(4 * digests)
            id = try number()
        }
        guard id == Self.end else { throw Refusal.damaged("it has fields that are not known here") }
    }

    private mutating func expect(_ id: Int) throws {
        guard try number() == id else { throw Refusal.damaged("a field is missing") }
    }

    private mutating func count() throws -> Int {
        let count = try number()
        guard count <= Self.most else { throw Refusal.damaged("it has too many streams") }
        return count
    }

    /// 7z's numbers: the ones at the top of the first byte say how many bytes follow, its other bits come last.
    private mutating func number() throws -> Int {
        let first = Int(try byte())
        var extra = 0
        while extra < 8, first & (0x80 >> extra) != 0 { extra += 1 }
        let low = try extra == 0 ? 0 : fields.number(extra)
        let high = extra >= 7 ? 0 : first & (0x7f >> extra)
        guard extra < 8 else { return low }
        return low | high << (8 * extra)
    }
}
