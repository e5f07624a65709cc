internal import Glibc
internal import MoultBasics

/// Large enough that system calls cost nothing beside the digest, small enough to stay in the CPU's second cache.
private let blockSize = 256 << 10

/// Hands out a whole file in order, block by block, to its end.
func forEachBlock(
    of descriptor: Int32, named name: String, _ body: (UnsafeRawBufferPointer) throws -> Void
) throws {
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 4096)
    defer { block.deallocate() }
    var offset: off_t = 0
    while true {
        let count = pread(descriptor, block.baseAddress, block.count, offset)
        if count < 0 {
            if errno == EINTR { continue }
            throw readError(name, errno)
        }
        if count == 0 { return }
        try body(UnsafeRawBufferPointer(rebasing: block[..<count]))
        offset += off_t(count)
    }
}

/// Opens a file to read it, and closes it after `body`.
func withFile<Result>(at path: String, _ body: (Int32) throws -> Result) throws -> Result {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw readError(path, errno, "open") }
    // Nothing was written, so a close that fails loses nothing.
    defer { _ = close(descriptor) }
    return try body(descriptor)
}
