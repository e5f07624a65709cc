/// Proves that a 7z file is nothing but its packed streams and its header, and that unpacking it takes little memory.
///
/// libarchive sets no limit to the dictionary that a 7z file asks for, and starts wherever the header says. So the
/// header is read here first, as far as it speaks of streams; the files in it are left to libarchive.
struct SevenZipLayout {
    private static let startSize = 32
    private static let mostHeader = 1 << 20

    static func check(_ file: RawFile) throws {
        var start = LittleEndian(try file.bytes(at: 0, count: startSize)[...])
        // Signature, version and checksum are libarchive's to check.
        _ = try start.take(12)
        let (offset, size) = try (start.number(8), start.number(8))
        let packedEnd = offset
        guard size <= mostHeader, offset <= file.size - startSize else { throw Refusal.cut }
        guard startSize + offset + size <= file.size else { throw Refusal.cut }
        guard startSize + offset + size == file.size else {
            throw Refusal(.archiveGarbage, "there are other bytes behind the end of the 7z archive")
        }
        // An archive of nothing has no header.
        guard size > 0 else { return }
        let header = try file.bytes(at: startSize + offset, count: size)
        try check(header: header, in: file, packedEnd: packedEnd)
    }

    private static func check(header: [UInt8], in file: RawFile, packedEnd: Int) throws {
        var reader = SevenZipHeader(header)
        switch try reader.byte() {
        case SevenZipHeader.header:
            // An archive of empty files has no streams.
            let streams = try reader.optionalStreams()
            guard streams?.packed ?? (0..<0) == 0..<packedEnd else { throw gap }
        case SevenZipHeader.encodedHeader:
            let streams = try reader.streams()
            guard let coder = streams.coders.first, streams.coders.count == 1, let size = streams.sizes.first,
                size <= mostHeader, streams.packed.upperBound == packedEnd
            else { throw gap }
            let packed = try file.bytes(at: startSize + streams.packed.lowerBound, count: streams.packed.count)
            let plain = try coder.decode(packed, size: size)
            guard plain.first == SevenZipHeader.header else { throw Refusal.damaged("it is packed twice") }
            try check(header: plain, in: file, packedEnd: streams.packed.lowerBound)
        default: throw Refusal.damaged("it begins with an unknown field")
        }
    }

    private static var gap: Refusal {
        Refusal(.archiveGarbage, "there are bytes between the parts of the 7z archive that belong to none")
    }
}
