internal import MoultFiles
internal import MoultLibc

/// Reads two files in lockstep, in blocks of the same size.
struct BlockPairs: ~Copyable {
    private let old: Descriptor
    private let new: Descriptor
    private let blockSize: Int
    private let blocks: UnsafeMutableRawPointer

    init(old: String, new: String, blockSize: Int) throws {
        let one = try Descriptor(old, .read)
        let two = try Descriptor(new, .read)
        self.old = one
        self.new = two
        self.blockSize = blockSize
        blocks = .allocate(byteCount: 2 * blockSize, alignment: 4096)
    }

    deinit { blocks.deallocate() }

    /// Passes pairs of blocks to the body, shorter or empty at the end of a file, until both files have ended or the
    /// body returns false.
    func forEach(_ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Bool) throws {
        var offset = 0
        while true {
            let one = try fill(blocks, old, offset)
            let two = try fill(blocks + blockSize, new, offset)
            if one.isEmpty && two.isEmpty { return }
            guard try body(one, two) else { return }
            offset += blockSize
        }
    }

    private func fill(
        _ start: UnsafeMutableRawPointer, _ file: borrowing Descriptor, _ offset: Int
    ) throws -> UnsafeRawBufferPointer {
        var count = 0
        while count < blockSize {
            let rest = UnsafeMutableRawBufferPointer(start: start + count, count: blockSize - count)
            let more = try file.read(into: rest, at: offset + count)
            if more == 0 { break }
            count += more
        }
        return UnsafeRawBufferPointer(start: start, count: count)
    }
}

func isSame(_ one: UnsafeRawBufferPointer, _ two: UnsafeRawBufferPointer) -> Bool {
    guard one.count == two.count else { return false }
    guard let first = one.baseAddress, let second = two.baseAddress else { return true }
    return memcmp(first, second, one.count) == 0
}
