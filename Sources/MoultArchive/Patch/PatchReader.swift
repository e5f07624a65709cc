internal import CZstd
internal import MoultBasics
package import MoultFiles

/// Applies a patch: produces the new file's content from the patch and the old file. The patch's frames are the pieces of
/// `PatchLayout`.
///
/// The caller verifies the output, because a wrong old file causes an error or wrong bytes.
package final class PatchReader: FrameSource {
    private let file: Descriptor
    private let base: Descriptor?
    private let baseSize: Int
    package let layout: PatchLayout
    private let frames: [Frame]
    private let offsets: [Int]

    /// Creates a reader for a patch that turns `base` into a file of the given size. Refuses a patch with a different layout.
    package init(_ file: consuming Descriptor, base: consuming Descriptor?, resultSize: Int) throws {
        let baseSize = try base?.facts().size ?? 0
        let layout = PatchLayout(baseSize: baseSize, resultSize: resultSize)
        let found = try SeekTable.read(file)
        frames = try reading(file.path) {
            guard let found, found.map(\.contentSize) == layout.contentSizes else {
                throw ArchiveRefusal(
                    .archiveFrames,
                    found == nil ? "it is not a patch, or it is truncated" : "it is for files of different sizes",
                    now: .samePatch)
            }
            // No frame is larger than zstd's output for incompressible content.
            guard found.allSatisfy({ $0.packedSize <= ZSTD_compressBound($0.contentSize) }) else {
                throw ArchiveRefusal(.archiveFrames, "one of its frames is too large", now: .patchAgain)
            }
            return found
        }
        offsets = frames.offsets
        self.layout = layout
        self.baseSize = baseSize
        self.base = base
        self.file = file
    }

    package var contentSizes: [Int] { layout.contentSizes }

    /// The number of threads that fit into the memory limit: their buffers, with the columns of differences, need at most 64
    /// MiB in total. LZMA needs additional memory.
    package var maxThreads: Int { Self.maxThreads(for: layout) }

    package static func maxThreads(for layout: PatchLayout) -> Int {
        let most = layout.contentSizes.max() ?? 1
        return max(1, decoderMemoryLimit / (ZSTD_compressBound(most) + most + 2 * DifferenceFrame.maxColumns))
    }

    package func decoder(into memory: UnsafeMutableRawBufferPointer?) throws -> (Int) throws -> UnsafeRawBufferPointer {
        try reading(file.path) {
            let decoder = try FrameDecoder(for: frames, into: memory)
            let old = OldBytes(count: baseSize) { try Self.read(self.base, into: $0, at: $1) }
            return { index in
                try reading(self.file.path) {
                    let packed = try decoder.load(self.frames[index], from: self.file, at: self.offsets[index])
                    return try self.decode(packed, self.layout.pieces[index], self.offsets[index], old, by: decoder)
                }
            }
        }
    }

    private static func read(_ file: borrowing Descriptor?, into buffer: UnsafeMutableRawBufferPointer, at offset: Int)
        throws -> Int
    {
        switch file {
        case .some(let file): try file.read(into: buffer, at: offset)
        case .none: 0
        }
    }

    /// Decodes one piece. The content belongs to the decoder, and is valid until the decoder's next call.
    private func decode(
        _ frame: UnsafeRawBufferPointer, _ piece: PatchLayout.Piece, _ offset: Int, _ old: OldBytes,
        by decoder: FrameDecoder
    ) throws -> UnsafeRawBufferPointer {
        guard let columns = try DifferenceFrame.decode(frame) else {
            return try piece.withBase(of: base) {
                try decoder.decode(frame, at: offset, contentSize: piece.count, behind: $0)
            }
        }
        let content = UnsafeMutableRawBufferPointer(rebasing: decoder.content[..<piece.count])
        try columns.withUnsafeBytes { columns in
            var reader = try DifferenceReader(columns, old: old, start: piece.offset)
            try reader.read(into: content)
        }
        return UnsafeRawBufferPointer(content)
    }
}
