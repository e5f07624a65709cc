internal import MoultFiles

/// Large enough that system calls cost nothing beside the digest, small enough to stay in the CPU's second cache.
private let blockSize = 256 << 10

/// Hands out a whole file in order, block by block, to its end.
func forEachBlock(of file: borrowing Descriptor, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 4096)
    defer { block.deallocate() }
    var offset = 0
    while true {
        let count = try file.read(into: block, at: offset)
        if count == 0 { return }
        try body(UnsafeRawBufferPointer(rebasing: block[..<count]))
        offset += count
    }
}
