internal import CZstd
internal import MoultBasics
internal import MoultFiles

/// The raw bytes of an archive file, block by block.
final class RawFile {
    let size: Int
    /// The end of the part that `next` returns.
    var end: Int
    /// The offset of the next block.
    var position = 0
    private let file: Descriptor
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)

    init(_ file: consuming Descriptor) throws {
        size = try file.facts().size
        end = size
        self.file = file
    }

    deinit { block.deallocate() }

    /// Returns the next block, valid until the next call; empty at the end.
    func next() throws -> UnsafeRawBufferPointer {
        let room = max(0, min(block.count, end - position))
        let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: block[..<room]), at: position)
        position += count
        return UnsafeRawBufferPointer(rebasing: block[..<count])
    }

    /// Whether there are only NUL bytes from an offset to the end of the file, and not more than a program writes as padding.
    func isPadding(from start: Int) throws -> Bool {
        let most = 1 << 20
        return try size - start <= most && bytes(at: start, count: size - start).allSatisfy { $0 == 0 }
    }

    /// Returns exactly `count` bytes at an offset in the file.
    func bytes(at offset: Int, count: Int) throws -> [UInt8] {
        guard offset >= 0, count >= 0, offset <= size, count <= size - offset else { throw ArchiveRefusal.cut }
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = try file.fill(UnsafeMutableRawBufferPointer(buffer), at: offset)
            if filled < count { throw ArchiveRefusal.cut }
        }
    }
}

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

/// The content of a file that is compressed with zstd, block by block. The file may have several frames.
final class ZstdStream {
    private let file: RawFile
    private let context: OpaquePointer
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: ZSTD_DStreamOutSize(), alignment: 4096)
    private var input = ZSTD_inBuffer(src: nil, size: 0, pos: 0)
    /// Whether the last block was full, so that zstd may have more content without more input.
    private var wasFull = false
    private var isInFrame = false

    /// A frame of `pack` has at most 8 MiB.
    private static let largestWindowLog = 24

    init(_ file: RawFile) throws {
        self.file = file
        guard let context = ZSTD_createDCtx() else { throw ArchiveRefusal.library("zstd cannot start") }
        self.context = context
        try check(zstd: ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Int32(Self.largestWindowLog)))
    }

    deinit {
        ZSTD_freeDCtx(context)
        block.deallocate()
    }

    /// Returns the next block, valid until the next call; empty at the end.
    func next() throws -> UnsafeRawBufferPointer {
        while true {
            if input.pos == input.size, !wasFull {
                let more = try file.next()
                if more.isEmpty {
                    if isInFrame { throw ArchiveRefusal.cut }
                    return more
                }
                input = ZSTD_inBuffer(src: more.baseAddress, size: more.count, pos: 0)
            }
            var filled = ZSTD_outBuffer(dst: block.baseAddress, size: block.count, pos: 0)
            let left = ZSTD_decompressStream(context, &filled, &input)
            guard ZSTD_isError(left) == 0 else {
                throw ArchiveRefusal(
                    .archiveDamaged, "it is damaged: zstd says: \(String(cString: ZSTD_getErrorName(left)))")
            }
            // After the end of a frame, a call without input would count as the beginning of another one.
            (isInFrame, wasFull) = (left != 0, left != 0 && filled.pos == filled.size)
            if filled.pos > 0 { return UnsafeRawBufferPointer(rebasing: block[..<filled.pos]) }
        }
    }
}
