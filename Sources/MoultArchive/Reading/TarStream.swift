internal import MoultBasics

/// The bytes of a tar file, decompressed by libarchive, block by block, with their number so far.
final class TarStream {
    private let file: RawFile
    private let compression: ArchiveKind.Compression
    private let content: LibArchive?

    /// The number of bytes so far, and the number of NUL bytes at their end.
    private(set) var count = 0
    private(set) var zerosAtEnd = 0

    init(_ file: RawFile, _ compression: ArchiveKind.Compression) throws {
        (self.file, self.compression) = (file, compression)
        content = compression == .none ? nil : try LibArchive(.compressed(compression), ArchiveInput(file))
        _ = try content?.nextEntry()
    }

    /// Returns the next block, valid until the next call; empty at the end. Throws if the file ends before its content does, or has
    /// other data after it.
    func next() throws -> UnsafeRawBufferPointer {
        let bytes = try content.map(unpacked) ?? file.next()
        let zeros = Self.zerosAtEnd(of: bytes)
        zerosAtEnd = zeros == bytes.count ? zerosAtEnd + zeros : zeros
        count += bytes.count
        return bytes
    }

    private func unpacked(_ content: LibArchive) throws -> UnsafeRawBufferPointer {
        try content.nextData()?.bytes ?? end(at: content.bytesUsed)
    }

    /// Refuses data after the end of the compressed content, which libarchive ignores. NUL bytes may follow gzip and bzip2, as in the
    /// output of bsdtar to a pipe; libarchive itself reads the padding of xz.
    private func end(at place: Int) throws -> UnsafeRawBufferPointer {
        let mayHavePadding = compression == .gzip || compression == .bzip2
        guard try place == file.size || mayHavePadding && file.isPadding(from: place) else {
            throw ArchiveRefusal.trailingData(of: compression)
        }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    private static func zerosAtEnd(of bytes: UnsafeRawBufferPointer) -> Int {
        var end = bytes.count
        while end >= 8, bytes.loadUnaligned(fromByteOffset: end - 8, as: UInt64.self) == 0 { end -= 8 }
        while end > 0, bytes[end - 1] == 0 { end -= 1 }
        return bytes.count - end
    }
}
