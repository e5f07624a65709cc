internal import CZstd
internal import MoultBasics
internal import MoultFiles

/// zstd's compressor, on several threads: each piece of the content is a frame of its own, and readers see one stream. The result
/// depends on the content and the level, but not on the number of threads.
final class ZstdEncoder: Encoder {
    private let output: ArchiveOutput
    private let level: Int
    private let threads: Int
    private let queue = FrameQueue()
    private var running: [Threads.Running] = []
    private var block: Block
    private var filled = 0
    /// The numbers of frames that were given to the threads, and that were written.
    private var (begun, written) = (0, 0)

    /// Larger frames compress better: frames of 8 MiB make a file less than 1 % larger than a single frame would.
    private static let frameSize = 8 << 20

    /// `size` is the number of bytes of the whole content.
    init(level: Int, threads: Int, size: Int, _ output: @escaping ArchiveOutput) {
        (self.output, self.level, self.threads) = (output, level, max(1, threads))
        block = Block(min(size, Self.frameSize))
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
        block = queue.takeFree() ?? Block(Self.frameSize)
    }

    private func writeNext() throws {
        try queue.frame(written).withUnsafeBytes(output)
        written += 1
    }
}

/// The content of a frame.
private final class Block: @unchecked Sendable {
    // Unchecked: only one thread uses it at a time.
    let bytes: UnsafeMutableRawBufferPointer

    init(_ size: Int) { bytes = .allocate(byteCount: size, alignment: 4096) }

    deinit { bytes.deallocate() }
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
            let compressor = try FrameCompressor(level: level)
            while let job = next() {
                let frame = try compressor.compress(UnsafeRawBufferPointer(rebasing: job.block.bytes[..<job.count]))
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
}
