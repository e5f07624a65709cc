internal import MoultFiles

/// The raw bytes of an archive file, block by block.
final class RawFile {
    let size: Int
    private let file: Descriptor
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    private var offset = 0

    init(_ file: consuming Descriptor) throws {
        size = try file.facts().size
        self.file = file
    }

    deinit { block.deallocate() }

    /// Returns the next block, valid until the next call; empty at the end of the file or at `end`.
    func next(before end: Int = .max) throws -> UnsafeRawBufferPointer {
        let room = min(block.count, end - offset)
        let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: block[..<room]), at: offset)
        offset += count
        return UnsafeRawBufferPointer(rebasing: block[..<count])
    }

    func seek(to offset: Int) { self.offset = offset }

    /// Returns the number of NUL bytes at the end of the file, up to `most`.
    func zerosAtEnd(atMost most: Int) throws -> Int {
        var end = size
        while end > 0, size - end < most {
            let bytes = try bytes(at: max(0, end - 4096), count: min(4096, end))
            guard let last = bytes.lastIndex(where: { $0 != 0 }) else {
                end -= bytes.count
                continue
            }
            return min(size - end + bytes.count - 1 - last, most)
        }
        return min(size - end, most)
    }

    /// Returns exactly `count` bytes at an offset in the file.
    func bytes(at offset: Int, count: Int) throws -> [UInt8] {
        guard offset >= 0, count >= 0, offset <= size, count <= size - offset else { throw ArchiveRefusal.cut }
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
                let more = try file.read(into: rest, at: offset + filled)
                if more == 0 { throw ArchiveRefusal.cut }
                filled += more
            }
        }
    }
}
