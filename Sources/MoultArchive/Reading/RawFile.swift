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
            while filled < count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
                let more = try file.read(into: rest, at: offset + filled)
                if more == 0 { throw ArchiveRefusal.cut }
                filled += more
            }
        }
    }
}
