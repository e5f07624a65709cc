internal import MoultFiles

/// Writes a file and computes the SHA-256 of its content at the same time, so that the file need not be read again.
package final class DigestedFile {
    private let file: Descriptor?
    private let digest = GrowingDigest()
    private var started = 0
    /// The number of bytes written.
    package private(set) var size = 0

    /// Writeback starts after this many bytes, so that the sync at the end is short.
    private static let writeback = 8 << 20

    /// Without a path, only the digest is computed.
    package init(path: String?, mode: UInt32 = 0o600) throws {
        guard let path else {
            file = nil
            return
        }
        let file = try Descriptor(path, .create, mode: mode)
        // A umask may remove this user's own permissions.
        if mode == 0o600 { try file.setMode(mode) }
        self.file = consume file
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws {
        try digest.update(bytes)
        try file?.write(bytes)
        size += bytes.count
        if size - started >= Self.writeback {
            try file?.startWriteback(at: started, count: size - started)
            started = size
        }
    }

    /// Returns the digest as hexadecimal digits; no more bytes may be written.
    package func finish() throws -> String { try digest.finish() }
}

/// Large enough that system calls cost nothing compared with the digest, small enough to stay in the CPU's L2 cache.
private let blockSize = 256 << 10

/// Passes the blocks of a whole file to `body` in order.
func forEachBlock(of file: borrowing Descriptor, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 4096)
    defer { block.deallocate() }
    var offset = 0
    while true {
        try LongRead.check(file.path)
        let count = try file.read(into: block, at: offset)
        if count == 0 { return }
        try body(UnsafeRawBufferPointer(rebasing: block[..<count]))
        offset += count
    }
}
