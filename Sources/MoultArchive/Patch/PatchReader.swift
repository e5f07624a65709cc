internal import CZstd
internal import MoultBasics
package import MoultFiles

/// Applies a patch on several threads: makes the new file's content of the patch and the old file.
///
/// What comes out is proven by whoever takes it: a wrong old file gives an error, or wrong bytes.
package final class PatchReader: Sendable {
    private let file: Descriptor
    private let base: Descriptor?
    private let layout: PatchLayout
    private let frames: [Frame]
    private let offsets: [Int]

    /// Takes a patch that turns `base` into a file of a certain size; refuses one that is of another form.
    package init(_ file: consuming Descriptor, base: consuming Descriptor?, resultSize: Int) throws {
        let layout = PatchLayout(baseSize: try base?.facts().size ?? 0, resultSize: resultSize)
        let found = try SeekTable.read(file)
        frames = try reading(file.path) {
            guard let found, found.map(\.contentSize) == layout.contentSizes else {
                throw ArchiveRefusal(
                    .archiveFrames,
                    found == nil ? "it is no patch, or it is cut off" : "it is for files of other sizes",
                    now: "Get manifest and patch of the same release.")
            }
            // More than zstd makes of what it cannot compress.
            guard found.allSatisfy({ $0.packedSize <= ZSTD_compressBound($0.contentSize) }) else {
                throw ArchiveRefusal(.archiveFrames, "one of its frames is too large", now: "Get the patch again.")
            }
            return found
        }
        var sum = 0
        offsets = frames.map { frame in
            defer { sum += frame.packedSize }
            return sum
        }
        self.layout = layout
        self.base = base
        self.file = file
    }

    /// Hands out the pieces of the new file, begun in order, each on the thread that decoded it: its index, where it
    /// lies, and its content, which is valid during the call only.
    ///
    /// Takes fewer threads where their buffers would need more than 64 MiB together.
    package func read(
        threads: Int, onPiece: @Sendable (_ index: Int, _ offset: Int, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let packed = frames.reduce(1) { max($0, $1.packedSize) }
        let content = frames.reduce(1) { max($0, $1.contentSize) }
        let (layout, frames, offsets) = (layout, frames, offsets)
        // The columns of differences, and what LZMA needs for as many.
        let threads = max(1, min(threads, decoderMemoryLimit / (packed + content + 2 * DifferenceFrame.mostColumns)))
        try reading(file.path) {
            try withoutActuallyEscaping(onPiece) { onPiece in
                try Workers.run(jobs: frames.count, threads: threads) {
                    let decoder = try FrameDecoder(packedSize: packed, contentSize: content)
                    return { index in
                        let piece = layout.pieces[index]
                        let frame = try decoder.load(frames[index], from: self.file, at: offsets[index])
                        try onPiece(index, piece.offset, self.decode(frame, piece, offsets[index], by: decoder))
                    }
                }
            }
        }
    }

    /// The content is the decoder's, until it decodes again.
    private func decode(
        _ frame: UnsafeRawBufferPointer, _ piece: PatchLayout.Piece, _ offset: Int, by decoder: FrameDecoder
    ) throws -> UnsafeRawBufferPointer {
        guard let columns = try DifferenceFrame.decode(frame) else {
            return try piece.withBase(of: base) {
                try decoder.decode(frame, at: offset, contentSize: piece.count, behind: $0)
            }
        }
        let content = UnsafeMutableRawBufferPointer(rebasing: decoder.content[..<piece.count])
        try PatchLayout.withWhole(of: base) { old in
            try columns.withUnsafeBytes { columns in
                var reader = try DifferenceReader(columns, old: old, start: piece.offset)
                try reader.read(into: content)
            }
        }
        return UnsafeRawBufferPointer(content)
    }
}
