internal import CLzma
internal import CZlib
internal import CZstd
internal import MoultBasics
internal import MoultFiles

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

    func encode(_ bytes: UnsafeRawBufferPointer) throws { try output(bytes) }

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
            throw ArchiveRefusal.library("zlib cannot start")
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

    func finish() throws { try run(Z_FINISH, until: { false }) }

    private func run(_ flush: Int32, until isDone: () -> Bool) throws {
        while !isDone() {
            stream.next_out = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.avail_out = UInt32(block.count)
            let result = deflate(&stream, flush)
            guard result == Z_OK || result == Z_STREAM_END else {
                throw ArchiveRefusal.library("zlib fails with code \(result)")
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
            throw ArchiveRefusal.library("xz cannot start")
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

    func finish() throws { while try step(LZMA_FINISH) != LZMA_STREAM_END {} }

    private func step(_ action: lzma_action) throws -> lzma_ret {
        stream.next_out = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.avail_out = block.count
        let result = lzma_code(&stream, action)
        guard result == LZMA_OK || result == LZMA_STREAM_END else {
            throw ArchiveRefusal.library("xz fails with code \(result.rawValue)")
        }
        try output(UnsafeRawBufferPointer(rebasing: block[..<(block.count - stream.avail_out)]))
        return result
    }
}

/// zstd's compressor, on several threads: each piece of the content is a frame of its own, and readers see one stream. The result
/// depends on the content and the level, but not on the number of threads.
final class ZstdEncoder: Encoder {
    private let output: ArchiveOutput
    private let level: Int
    private let threads: Int
    private let queue = FrameQueue()
    private var running: [Threads.Running] = []
    private var block: FrameQueue.Block
    private var filled = 0
    /// The numbers of frames that were given to the threads, and that were written.
    private var (begun, written) = (0, 0)

    /// Larger frames compress better: frames of 8 MiB make a file less than 1 % larger than a single frame would.
    private static let frameSize = 8 << 20

    /// `size` is the number of bytes of the whole content.
    init(level: Int, threads: Int, size: Int, _ output: @escaping ArchiveOutput) {
        (self.output, self.level, self.threads) = (output, level, max(1, threads))
        block = FrameQueue.Block(min(size, Self.frameSize))
    }

    deinit {
        queue.end()
        for thread in running { thread.wait() }
    }

    func encode(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            if filled == block.bytes.count { try compress() }
            let part = UnsafeRawBufferPointer(rebasing: rest[..<min(rest.count, block.bytes.count - filled)])
            UnsafeMutableRawBufferPointer(rebasing: block.bytes[filled...]).copyMemory(from: part)
            filled += part.count
            rest = UnsafeRawBufferPointer(rebasing: rest[part.count...])
        }
    }

    func finish() throws {
        if filled > 0 { try compress() }
        while written < begun { try writeNext() }
    }

    /// Gives the block to the threads. One more than there are threads waits, so that no thread waits for a slower one.
    private func compress() throws {
        queue.put(FrameQueue.Job(index: begun, block: block, count: filled))
        begun += 1
        filled = 0
        if running.count < threads {
            running.append(try Threads.start { [queue, level] in queue.run(level: level) })
        }
        while begun - written > threads + 1 { try writeNext() }
        block = queue.takeFree() ?? FrameQueue.Block(Self.frameSize)
    }

    private func writeNext() throws {
        try queue.frame(written).withUnsafeBytes(output)
        written += 1
    }
}

/// The state that the threads share: blocks to compress, finished frames, and blocks without use.
private final class FrameQueue: @unchecked Sendable {
    struct Job {
        let index: Int
        let block: Block
        let count: Int
    }

    // Unchecked: all state is accessed only within the monitor.
    private let monitor = Monitor()
    private var jobs: [Job] = []
    private var frames: [Int: [UInt8]] = [:]
    private var free: [Block] = []
    private var isOver = false
    private var failure: (any Error)?

    func put(_ job: Job) { monitor.locked { jobs.append(job) } }

    func end() { monitor.locked { isOver = true } }

    func takeFree() -> Block? { monitor.locked { free.popLast() } }

    /// Waits for a frame, and removes it.
    func frame(_ index: Int) throws -> [UInt8] {
        try monitor.locked {
            monitor.wait { frames[index] == nil && failure == nil }
            if let failure { throw failure }
            return frames.removeValue(forKey: index) ?? []
        }
    }

    /// Compresses blocks until the end.
    func run(level: Int) {
        do {
            let compressor = try FrameCompressor()
            while let job = next() {
                let content = UnsafeRawBufferPointer(rebasing: job.block.bytes[..<job.count])
                let frame = try compressor.compress(content, level: level)
                monitor.locked {
                    frames[job.index] = frame
                    free.append(job.block)
                }
            }
        } catch { monitor.locked { failure = error } }
    }

    private func next() -> Job? {
        monitor.locked {
            monitor.wait { jobs.isEmpty && !isOver && failure == nil }
            return jobs.isEmpty || isOver || failure != nil ? nil : jobs.removeFirst()
        }
    }

    /// The content of a frame.
    final class Block: @unchecked Sendable {
        // Unchecked: only one thread uses it at a time.
        let bytes: UnsafeMutableRawBufferPointer

        init(_ size: Int) { bytes = .allocate(byteCount: size, alignment: 4096) }

        deinit { bytes.deallocate() }
    }
}
