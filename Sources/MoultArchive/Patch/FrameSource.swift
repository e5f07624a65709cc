internal import MoultFiles

/// A file that consists of independently decodable frames.
package protocol FrameSource: Sendable {
    /// The content size of each frame.
    var contentSizes: [Int] { get }

    /// The maximum number of threads that may decode at the same time, because their buffers need memory.
    var maxThreads: Int { get }

    /// Returns a function with which one thread decodes frames by their numbers. The content is valid until the next call of
    /// that function.
    ///
    /// With `memory`, which has room for the largest frame, the content is written to its beginning.
    func decoder(into memory: UnsafeMutableRawBufferPointer?) throws -> (Int) throws -> UnsafeRawBufferPointer
}

extension FrameSource {
    /// Starts to decode the frames in order, and passes the index and content of each to `onFrame` on the thread that decoded
    /// it. The content is valid only during the call. The first error is thrown.
    package func read(
        threads: Int, onFrame: @Sendable (_ index: Int, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try withoutActuallyEscaping(onFrame) { onFrame in
            try Workers.run(jobs: contentSizes.count, threads: min(threads, maxThreads)) {
                let decode = try decoder(into: nil)
                return { index in try onFrame(index, decode(index)) }
            }
        }
    }
}
