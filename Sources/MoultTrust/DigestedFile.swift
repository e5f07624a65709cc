internal import MoultFiles

/// A file in the making, and the SHA-256 of everything written to it, so that it need not be read for that.
package final class DigestedFile {
    private let file: Descriptor?
    private let digest = GrowingDigest()
    private var started = 0
    /// How many bytes were written.
    package private(set) var size = 0

    /// The disk begins with so much at a time, so that the sync at the end is short.
    private static let writeback = 8 << 20

    /// Without a path only the digest is computed.
    package init(path: String?, mode: UInt32 = 0o600) throws {
        guard let path else {
            file = nil
            return
        }
        file = try Descriptor(path, .create, mode: mode)
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

    /// The digest as hexadecimal digits; nothing is written afterwards.
    package func finish() throws -> String { try digest.finish() }
}

/// Large enough that system calls cost nothing next to the digest, small enough to stay in the CPU's second cache.
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
