internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import Synchronization

/// Frames decoded by sandboxed processes, one for each thread that requests them.
final class ConfinedFrames: FrameSource {
    let contentSizes: [Int]
    let maxThreads: Int
    private let start: @Sendable () throws -> ArchiveProcess
    private let idle: Mutex<[ArchiveProcess]>

    /// `first` is a process that is already running; it is used before others are started.
    init(
        contentSizes: [Int], maxThreads: Int, first: ArchiveProcess,
        start: @escaping @Sendable () throws -> ArchiveProcess
    ) {
        (self.contentSizes, self.maxThreads, self.start) = (contentSizes, maxThreads, start)
        idle = Mutex([first])
    }

    func decoder(into memory: UnsafeMutableRawBufferPointer?) throws -> (Int) throws -> UnsafeRawBufferPointer {
        let process = try idle.withLock { $0.popLast() } ?? start()
        let buffer = memory.map { OwnBuffer(borrowing: $0) } ?? OwnBuffer(size: contentSizes.max() ?? 0)
        return { [contentSizes] index in
            process.send(.record(["frame": index]))
            guard try process.next().count("bytes") == contentSizes[index] else {
                throw process.invalid("frame \(index) has the wrong size")
            }
            let content = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<contentSizes[index]])
            try process.copy(into: content, at: 0)
            return UnsafeRawBufferPointer(content)
        }
    }
}

/// Memory that no other process can access.
final class OwnBuffer {
    let bytes: UnsafeMutableRawBufferPointer
    private let isOwned: Bool

    init(size: Int) { (bytes, isOwned) = (.allocate(byteCount: max(1, size), alignment: 4096), true) }
    init(borrowing bytes: UnsafeMutableRawBufferPointer) { (self.bytes, isOwned) = (bytes, false) }

    deinit { if isOwned { bytes.deallocate() } }
}
