internal import CZstd
internal import MoultBasics
package import MoultFiles

/// Decodes the frames of a bundle on several threads at once.
package final class FrameReader: Sendable {
    private let file: Descriptor
    private let frames: [Frame]
    private let packedOffsets: [Int]
    private let contentOffsets: [Int]

    /// Takes a file whose frames are declared; refuses it unless they and their seek table are the whole file.
    package init(_ file: consuming Descriptor, frames: [Frame]) throws {
        let found = try SeekTable.read(file)
        try reading(file.path) {
            guard found == frames else {
                throw ArchiveRefusal(
                    .archiveFrames, found == nil ? "it has no seek table" : "its frames are not the declared ones",
                    now: "Take the manifest and the archive from the same release.")
            }
            let largest = frames.reduce(0) { max($0, $1.packedSize + $1.contentSize) }
            guard largest <= decoderMemoryLimit else {
                throw ArchiveRefusal.memory("its largest frame", now: "Pack it again with smaller frames.")
            }
        }
        self.file = file
        self.frames = frames
        packedOffsets = Self.offsets(frames.map(\.packedSize))
        contentOffsets = Self.offsets(frames.map(\.contentSize))
    }

    private static func offsets(_ sizes: [Int]) -> [Int] {
        var sum = 0
        return sizes.map { size in
            defer { sum += size }
            return sum
        }
    }

    /// Decodes all frames, begun in order, and hands each to `onFrame` on the thread that decoded it:
    /// its index, where its content lies in the whole, and the content, which is valid during the call only.
    ///
    /// Takes fewer threads where their buffers would need more than 32 MiB together. The first error wins.
    package func read(
        threads: Int, onFrame: @Sendable (_ index: Int, _ offset: Int, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let packed = frames.reduce(1) { max($0, $1.packedSize) }
        let content = frames.reduce(1) { max($0, $1.contentSize) }
        let threads = min(threads, decoderMemoryLimit / 2 / (packed + content))
        try reading(file.path) {
            try withoutActuallyEscaping(onFrame) { onFrame in
                try Workers.run(jobs: frames.count, threads: threads) {
                    let decoder = try FrameDecoder(packedSize: packed, contentSize: content)
                    return { index in
                        let bytes = try decoder.decode(
                            self.frames[index], from: self.file, at: self.packedOffsets[index])
                        try onFrame(index, self.contentOffsets[index], bytes)
                    }
                }
            }
        }
    }
}

/// One thread's decoder with its two buffers.
final class FrameDecoder {
    private let context: OpaquePointer
    private let packed: UnsafeMutableRawBufferPointer
    let content: UnsafeMutableRawBufferPointer

    init(packedSize: Int, contentSize: Int) throws {
        guard let context = ZSTD_createDCtx() else {
            throw ArchiveRefusal(.archiveLibrary, "zstd cannot start", now: nil)
        }
        self.context = context
        packed = .allocate(byteCount: packedSize, alignment: 4096)
        content = .allocate(byteCount: contentSize, alignment: 4096)
    }

    deinit {
        ZSTD_freeDCtx(context)
        packed.deallocate()
        content.deallocate()
    }

    func decode(_ frame: Frame, from file: borrowing Descriptor, at offset: Int) throws -> UnsafeRawBufferPointer {
        try decode(load(frame, from: file, at: offset), at: offset, contentSize: frame.contentSize)
    }

    /// The frame as it lies in the file, until the next one is loaded.
    func load(_ frame: Frame, from file: borrowing Descriptor, at offset: Int) throws -> UnsafeRawBufferPointer {
        let packed = UnsafeMutableRawBufferPointer(rebasing: packed[..<frame.packedSize])
        try fill(packed, from: file, at: offset)
        return UnsafeRawBufferPointer(packed)
    }

    /// `prefix` is what the frame looks back at, if it was compressed so; it must stay until the call has returned.
    func decode(
        _ packed: UnsafeRawBufferPointer, at offset: Int, contentSize: Int,
        behind prefix: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) throws -> UnsafeRawBufferPointer {
        // One frame and nothing behind it: zstd would decode several in a row.
        guard ZSTD_findFrameCompressedSize(packed.baseAddress, packed.count) == packed.count else {
            throw ArchiveRefusal(.archiveFrames, "the frame at \(offset) does not end where it should")
        }
        // It counts for one frame only.
        let referred = ZSTD_DCtx_refPrefix(context, prefix.baseAddress, prefix.count)
        guard ZSTD_isError(referred) == 0 else {
            throw ArchiveRefusal(
                .archiveLibrary, "zstd says: \(String(cString: ZSTD_getErrorName(referred)))", now: nil)
        }
        let count = ZSTD_decompressDCtx(
            context, content.baseAddress, contentSize, packed.baseAddress, packed.count)
        guard ZSTD_isError(count) == 0 else {
            throw ArchiveRefusal(
                .archiveDamaged,
                "the frame at \(offset) is damaged: zstd says: \(String(cString: ZSTD_getErrorName(count)))")
        }
        guard count == contentSize else {
            throw ArchiveRefusal(.archiveFrames, "the frame at \(offset) has \(count) bytes, listed are \(contentSize)")
        }
        return UnsafeRawBufferPointer(rebasing: content[..<count])
    }
}
