internal import MoultFiles

/// A file whose content is made of frames, each decoded by itself.
package protocol FrameSource: Sendable {
    /// How much content each frame has.
    var contentSizes: [Int] { get }

    /// How many threads may decode at a time: their buffers need memory.
    var mostThreads: Int { get }

    /// Decodes frames on one thread, by their numbers; the content is valid until its next call.
    ///
    /// With `memory` the content stays there, at its beginning; it has room for the largest frame.
    func decoder(into memory: UnsafeMutableRawBufferPointer?) throws -> (Int) throws -> UnsafeRawBufferPointer
}

extension FrameSource {
    /// Decodes all frames, begun in order, and hands each to `onFrame` on the thread that decoded it: its index and its
    /// content, which is valid during the call only. The first error wins.
    package func read(
        threads: Int, onFrame: @Sendable (_ index: Int, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try withoutActuallyEscaping(onFrame) { onFrame in
            try Workers.run(jobs: contentSizes.count, threads: min(threads, mostThreads)) {
                let decode = try decoder(into: nil)
                return { index in try onFrame(index, decode(index)) }
            }
        }
    }
}
