/// Packs members into a bundle: a `.tar.zst` that every tar can read, and that `BundleReader` reads in parallel.
package struct BundleWriter {
    private let layout: BundleLayout
    private let level: Int
    private let threads: Int

    package init(_ layout: BundleLayout, level: Int, threads: Int) {
        self.layout = layout
        self.level = level
        self.threads = threads
    }

    /// A source of content: gets a member's index, and a function that receives each piece of its content.
    package typealias Source = (_ member: Int, _ write: (UnsafeRawBufferPointer) throws -> Void) throws -> Void

    /// Writes the bundle and returns its frames, one for each part of the layout.
    ///
    /// `source` is called for each member with content, in order, and must provide exactly as many bytes as the layout has for
    /// it. `onFrame` gets each frame's index and content on the thread that compresses it; `output` gets the file's bytes in
    /// order.
    package func write(
        onFrame: @Sendable (_ index: Int, UnsafeRawBufferPointer) throws -> Void = { _, _ in },
        output: (UnsafeRawBufferPointer) throws -> Void, source: Source
    ) throws -> [Frame] {
        try FrameWriter.write(
            level: level, threads: threads, frameSize: layout.frameSize, onFrame: onFrame, output: output
        ) { writer in
            for part in layout.parts {
                switch part {
                case .tar(let bytes):
                    try writer.write(bytes)
                    try writer.endFrame()
                case .content(let member, offset: 0, _):
                    try write(member, to: &writer, from: source)
                    try writer.endFrame()
                case .content: break
                }
            }
        }
    }

    private func write(_ index: Int, to writer: inout FrameWriter, from source: Source) throws {
        var counter = MemberCounter(name: layout.members[index].name, size: layout.members[index].size)
        try source(index) { bytes in
            try counter.add(bytes.count)
            try writer.write(bytes)
        }
        try counter.finish()
    }
}
