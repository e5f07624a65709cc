/// The bytes of the old file of a patch, read in windows of constant size: a file of gigabytes needs no more memory than a small one.
final class OldBytes {
    let count: Int
    private let read: (UnsafeMutableRawBufferPointer, _ offset: Int) throws -> Int
    private let window = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 4096)
    /// The part of the file in the window.
    private var part = 0..<0

    /// Covers that follow each other are often near, but most are short.
    private static let leastRead = 16 << 10

    /// `read` fills the buffer from an offset, and returns the number of bytes.
    init(count: Int, read: @escaping (UnsafeMutableRawBufferPointer, _ offset: Int) throws -> Int) {
        (self.count, self.read) = (count, read)
    }

    deinit { window.deallocate() }

    /// Returns between 1 and `most` bytes, which are valid until the next call.
    func bytes(at offset: Int, most: Int) throws -> UnsafeRawBufferPointer {
        if !part.contains(offset) {
            let size = min(max(most, Self.leastRead), window.count, count - offset)
            let found = try read(UnsafeMutableRawBufferPointer(rebasing: window[..<max(0, size)]), offset)
            // The file has become shorter.
            guard found > 0 else { throw ArchiveRefusal.difference }
            part = offset..<offset + found
        }
        let first = offset - part.lowerBound
        return UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(window)[first..<first + min(most, part.upperBound - offset)])
    }
}

extension OldBytes {
    /// The bytes in memory, which must outlive this object.
    convenience init(_ memory: UnsafeRawBufferPointer) {
        self.init(count: memory.count) { target, offset in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[offset..<offset + target.count]))
            return target.count
        }
    }
}
