internal import MoultBasics
package import MoultFiles
internal import Synchronization

/// Makes patches, which turn an old file into a new one.
package final class PatchWriter: Sendable {
    private let base: Descriptor?
    private let result: Descriptor
    private let layout: PatchLayout

    /// Without a base, the patch is only the compressed new file.
    package init(from base: consuming Descriptor?, to result: consuming Descriptor) throws {
        let baseSize = try base?.facts().size ?? 0
        layout = PatchLayout(baseSize: baseSize, resultSize: try result.facts().size)
        self.base = base
        self.result = result
    }

    /// Writes the patch. The same two files and the same memory for the index give the same bytes, regardless of the
    /// number of threads.
    ///
    /// `output` gets the bytes in order, on several threads, but only one at a time. `progress` gets the number of
    /// bytes of the new file that are done, in the same way.
    package func write(
        using memory: PatchMemory, progress: @Sendable (_ done: Int) throws -> Void = { _ in },
        output: @Sendable (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let frames = try packing {
            try PatchLayout.withWhole(of: base) { base in
                let old = base.isEmpty ? nil : OldFile(base, memory: memory.index)
                return try withoutActuallyEscaping(output) { output in
                    let queue = FrameQueue(output: output)
                    try withoutActuallyEscaping(progress) { try compress(old, memory.threads, into: queue, $0) }
                    return queue.frames
                }
            }
        }
        try SeekTable.encode(frames).withUnsafeBytes { try output($0) }
    }

    /// Returns whether samples of each piece of the new file have almost nothing in common with the old file. If so, the patch
    /// would be about as large as the compressed file.
    package func isUnlike() throws -> Bool {
        try packing {
            try PatchLayout.withWhole(of: base) { base in
                if base.isEmpty { return true }
                let old = OldFile(base)
                return try layout.pieces.allSatisfy { piece in
                    try MappedFile(result, piece.offset..<piece.offset + piece.count).withBytes {
                        !old.has($0, at: piece.offset) && old.isUnlike($0, start: piece.offset)
                    }
                }
            }
        }
    }

    private func compress(
        _ old: OldFile?, _ threads: Int, into queue: FrameQueue, _ progress: @escaping @Sendable (Int) throws -> Void
    ) throws {
        let layout = layout
        try Workers.run(jobs: layout.pieces.count, threads: threads) {
            let compressor = try PatchCompressor(old)
            return { index in
                let piece = layout.pieces[index]
                let packed = try piece.withBase(of: self.base) { near in
                    try MappedFile(self.result, piece.offset..<piece.offset + piece.count).withBytes {
                        try compressor.compress($0, of: piece, behind: near)
                    }
                }
                try queue.add(packed, at: index, contentSize: piece.count, progress)
            }
        }
    }
}

/// Compressed frames that are written in order, regardless of which was ready first.
private final class FrameQueue: Sendable {
    private struct State {
        var frames: [Frame] = []
        var waiting: [Int: (bytes: [UInt8], contentSize: Int)] = [:]
        var done = 0
    }
    private let state = Mutex(State())
    private let output: @Sendable (UnsafeRawBufferPointer) throws -> Void

    init(output: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) { self.output = output }

    var frames: [Frame] { state.withLock { $0.frames } }

    func add(_ bytes: [UInt8], at index: Int, contentSize: Int, _ progress: (Int) throws -> Void) throws {
        try state.withLock { state in
            state.waiting[index] = (bytes, contentSize)
            while let next = state.waiting.removeValue(forKey: state.frames.count) {
                try next.bytes.withUnsafeBytes { try output($0) }
                state.frames.append(Frame(packedSize: next.bytes.count, contentSize: next.contentSize))
                state.done += next.contentSize
                try progress(state.done)
            }
        }
    }
}
