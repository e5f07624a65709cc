internal import CLzma
internal import CZlib
internal import MoultBasics

/// Receives the bytes of an archive in order.
typealias ArchiveOutput = (UnsafeRawBufferPointer) throws -> Void

/// Compresses a stream piece by piece.
protocol Encoder: AnyObject {
    func encode(_ bytes: UnsafeRawBufferPointer) throws
    func finish() throws
}

extension ArchiveKind.Compression {
    /// The useful levels that the strict reader accepts.
    var levels: ClosedRange<Int> {
        switch self {
        case .none: 0...0
        case .zstd: 1...19
        // Level 9 needs more than 64 MiB to unpack.
        case .xz: 0...8
        case .gzip, .bzip2: 1...9
        }
    }
}

/// Passes content through uncompressed.
final class PlainEncoder: Encoder {
    private let output: ArchiveOutput

    init(_ output: @escaping ArchiveOutput) { self.output = output }

    func encode(_ bytes: UnsafeRawBufferPointer) throws {
        try output(bytes)
    }

    func finish() {}
}

/// zlib's compressor: a gzip file, or raw deflate for zip.
final class DeflateEncoder: Encoder {
    enum Form: Int32 {
        case gzip = 31
        case bare = -15
    }

    private let output: ArchiveOutput
    private var stream = z_stream()
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)

    init(_ form: Form, level: Int, _ output: @escaping ArchiveOutput) throws {
        self.output = output
        guard moult_deflate_init(&stream, Int32(level), form.rawValue) == Z_OK else {
            throw ArchiveRefusal(.archiveLibrary, "zlib cannot start", now: nil)
        }
    }

    deinit {
        deflateEnd(&stream)
        block.deallocate()
    }

    func encode(_ bytes: UnsafeRawBufferPointer) throws {
        // Encodes in pieces, because zlib requires sizes that fit into 32 bits.
        for start in stride(from: 0, to: bytes.count, by: 1 << 30) {
            let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + 1 << 30, bytes.count)])
            // zlib does not write through next_in.
            stream.next_in = UnsafeMutablePointer(mutating: piece.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.avail_in = UInt32(piece.count)
            try run(Z_NO_FLUSH, until: { stream.avail_in == 0 })
        }
    }

    func finish() throws {
        try run(Z_FINISH, until: { false })
    }

    private func run(_ flush: Int32, until isDone: () -> Bool) throws {
        while !isDone() {
            stream.next_out = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.avail_out = UInt32(block.count)
            let result = deflate(&stream, flush)
            guard result == Z_OK || result == Z_STREAM_END else {
                throw ArchiveRefusal(.archiveLibrary, "zlib fails with code \(result)", now: nil)
            }
            try output(UnsafeRawBufferPointer(rebasing: block[..<(block.count - Int(stream.avail_out))]))
            if result == Z_STREAM_END { return }
        }
    }
}

/// liblzma's .xz compressor, with the preset of the given level and a CRC-64.
final class XzEncoder: Encoder {
    private let output: ArchiveOutput
    private var stream = lzma_stream()
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)

    init(level: Int, _ output: @escaping ArchiveOutput) throws {
        self.output = output
        guard lzma_easy_encoder(&stream, UInt32(level), LZMA_CHECK_CRC64) == LZMA_OK else {
            throw ArchiveRefusal(.archiveLibrary, "xz cannot start", now: nil)
        }
    }

    deinit {
        lzma_end(&stream)
        block.deallocate()
    }

    func encode(_ bytes: UnsafeRawBufferPointer) throws {
        stream.next_in = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.avail_in = bytes.count
        while stream.avail_in > 0 { _ = try step(LZMA_RUN) }
    }

    func finish() throws {
        while try step(LZMA_FINISH) != LZMA_STREAM_END {}
    }

    private func step(_ action: lzma_action) throws -> lzma_ret {
        stream.next_out = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.avail_out = block.count
        let result = lzma_code(&stream, action)
        guard result == LZMA_OK || result == LZMA_STREAM_END else {
            throw ArchiveRefusal(.archiveLibrary, "xz fails with code \(result.rawValue)", now: nil)
        }
        try output(UnsafeRawBufferPointer(rebasing: block[..<(block.count - stream.avail_out)]))
        return result
    }
}
