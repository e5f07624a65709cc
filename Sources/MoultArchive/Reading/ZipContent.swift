internal import CZlib
internal import MoultBasics

/// The entries of a zip archive with a verified layout. Checks the size and checksum of each.
final class ZipContent: EntrySource {
    private let file: RawFile
    private var rest: ArraySlice<ZipLayout.Entry>
    private var entry: ZipLayout.Entry?
    private var stream: PlainStream?
    private var checksum: UInt = 0

    init(_ file: RawFile, _ layout: ZipLayout) {
        self.file = file
        rest = layout.entries[...]
    }

    func nextEntry() throws -> ArchiveEntry? {
        guard let next = rest.popFirst() else { return nil }
        entry = next
        checksum = crc32_z(0, nil, 0)
        file.seek(to: next.content.lowerBound)
        let file = file
        stream = PlainStream(
            { try file.next(before: next.content.upperBound) },
            decoder: next.isDeflated ? try DeflateDecoder(.bare) : PlainDecoder(),
            cut: ArchiveRefusal(.archiveDamaged, "the content of its entry \"\(Self.shown(next))\" ends too early"))
        return next.header
    }

    func nextData() throws -> (offset: Int, bytes: UnsafeRawBufferPointer)? {
        guard let entry, let stream else { return nil }
        let offset = stream.count
        let bytes = try stream.next()
        if !bytes.isEmpty {
            checksum = crc32_z(checksum, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
            return (offset, bytes)
        }
        guard stream.count == entry.size, checksum == UInt(entry.checksum) else {
            throw ArchiveRefusal(.archiveDamaged, "the checksum of its entry \"\(Self.shown(entry))\" is wrong")
        }
        self.stream = nil
        return nil
    }

    private static func shown(_ entry: ZipLayout.Entry) -> String { printable(entry.header.name ?? "") }
}
