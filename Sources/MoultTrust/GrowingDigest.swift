internal import MoultFiles
internal import Synchronization

/// A SHA-256 digest of bytes as they arrive. The caller continues while another thread computes the digest.
package final class GrowingDigest: @unchecked Sendable {
    // Unchecked: only one thread uses it at a time, and the state shared with the internal thread is in `work`.
    private let work = Work()
    private var thread: Threads.Running?
    private var block: [UInt8] = []

    /// Large enough that the handover costs nothing, small enough for the CPU's caches.
    private static let blockSize = 1 << 18

    package init() {}

    deinit {
        work.end(abandoned: true)
        thread?.wait()
    }

    /// Adds the next bytes, which are copied.
    package func update(_ bytes: UnsafeRawBufferPointer) throws {
        var done = 0
        while done < bytes.count {
            if block.count == Self.blockSize { try handOver() }
            let end = min(bytes.count, done + Self.blockSize - block.count)
            block += UnsafeRawBufferPointer(rebasing: bytes[done..<end])
            done = end
        }
    }

    /// Returns the digest of all bytes, as hexadecimal digits; no more bytes may be added.
    package func finish() throws -> String {
        guard let running = thread else { return try SHA256.digest(of: block).hex }
        try handOver()
        work.end(abandoned: false)
        running.wait()
        thread = nil
        return try work.result().hex
    }

    private func handOver() throws {
        block = try work.put(block, reserving: Self.blockSize)
        if thread == nil { thread = try Threads.start { [work] in work.run() } }
    }
}

/// The shared state of the two threads: full blocks, empty ones, and the result.
private final class Work: @unchecked Sendable {
    // Unchecked: all state is accessed only within the monitor.
    private let monitor = Monitor()
    private var full: [[UInt8]] = []
    private var empty: [[UInt8]] = []
    private var isOver = false
    private var outcome: Result<Digest, any Error>?

    private static let maxBlocks = 8

    /// Exchanges a full block for an empty one; waits if the other thread is far behind.
    func put(_ block: [UInt8], reserving size: Int) throws -> [UInt8] {
        try monitor.locked {
            monitor.wait { full.count == Self.maxBlocks && outcome == nil }
            if case .failure(let error) = outcome { throw error }
            full.append(block)
            if let used = empty.popLast() { return used }
            var new: [UInt8] = []
            new.reserveCapacity(size)
            return new
        }
    }

    /// Ends the input. If the digest is abandoned, drops the blocks that remain.
    func end(abandoned: Bool) {
        monitor.locked {
            isOver = true
            if abandoned { full = [] }
        }
    }

    func run() {
        let result = Result {
            var hash = try SHA256()
            while var block = next() {
                try block.withUnsafeBytes { try hash.update($0) }
                block.removeAll(keepingCapacity: true)
                monitor.locked { empty.append(block) }
            }
            return try hash.finish()
        }
        monitor.locked { outcome = result }
    }

    private func next() -> [UInt8]? {
        monitor.locked {
            monitor.wait { full.isEmpty && !isOver }
            return full.isEmpty ? nil : full.removeFirst()
        }
    }

    func result() throws -> Digest {
        guard let outcome = monitor.locked({ outcome }) else { throw cryptoError("finish a SHA-256") }
        return try outcome.get()
    }
}

/// The SHA-256 digests of files, computed one after the other on a separate thread.
package final class BackgroundDigest: Sendable {
    private let work: BackgroundWork<[String: Result<String, any Error>]>
    private let isStopped: Flag

    /// Opens the files at once, so they may be moved afterwards; their content must not change.
    package init(of paths: [String: String]) throws {
        let files = try paths.mapValues { try SharedFile($0) }
        let isStopped = Flag()
        self.isStopped = isStopped
        work = try BackgroundWork {
            files.mapValues { file in
                Result { try SHA256.digest(of: file.descriptor) { if isStopped.isSet { throw Stopped() } }.hex }
            }
        }
    }

    /// Stops reading the files.
    deinit {
        isStopped.set()
        work.wait()
    }

    /// Waits for all digests, and returns one of them; nil for a name without a file.
    package func digest(_ name: String) throws -> String? { try work.value()[name]?.get() }

    /// Computes the digest of a file while `body` runs, and passes it to `check` afterwards.
    package static func of(_ path: String, while body: () throws -> Void, check: (String) throws -> Void) throws {
        let running = try BackgroundDigest(of: [path: path])
        try body()
        if let digest = try running.digest(path) { try check(digest) }
    }

    private struct Stopped: Error {}

    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .relaxed) }
        func set() { value.store(true, ordering: .relaxed) }
    }
}
