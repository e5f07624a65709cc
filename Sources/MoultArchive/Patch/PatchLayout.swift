internal import MoultBasics
internal import MoultFiles

/// The layout of a patch: the new file in pieces, each in a separate frame that refers to the old file.
///
/// A frame contains either the differences from the whole old file, or zstd data that refers to a part of it. The sizes of both
/// files determine the layout, so the writer and the reader of a patch use the same layout.
package struct PatchLayout: Hashable, Sendable {
    package struct Piece: Hashable, Sendable {
        /// The offset of the piece in the new file.
        package let offset: Int
        package let count: Int
        /// The part of the old file that zstd uses: all of it, if the window is large enough.
        package let base: Range<Int>
        /// The position in the old file from which the content is moved to the front, so that the content most similar to the
        /// piece is nearest to it; nil if nothing is moved.
        package let split: Int?
    }

    package let pieces: [Piece]

    /// The maximum size of a piece: small enough that several fit into memory while unpacking, and large enough that the number
    /// of pieces hardly matters.
    private static let pieceSize = 16 << 20
    /// The number of bytes after the position of a piece in the old file that also count as near.
    private static let lookahead = 4 << 20
    /// The maximum distance for zstd, including the piece itself and the zeros of a split.
    static let farthest = 1 << 31
    private static let maxBase = farthest - pieceSize - MappedFile.alignment

    /// `baseSize` is 0 for a patch that needs no old file.
    package init(baseSize: Int, resultSize: Int) {
        pieces = stride(from: 0, to: resultSize, by: Self.pieceSize).map { offset in
            let count = min(Self.pieceSize, resultSize - offset)
            let place = Int(Double(offset + count) / Double(resultSize) * Double(baseSize))
            let near = MappedFile.roundedUp(place + Self.lookahead)
            var base = 0..<baseSize
            if baseSize > Self.maxBase {
                // The base consists of equal parts before and after the position, if the file is large enough.
                let first = max(0, min(near - Self.maxBase / 2, MappedFile.roundedUp(baseSize - Self.maxBase)))
                let start = first / MappedFile.alignment * MappedFile.alignment
                base = start..<min(baseSize, start + Self.maxBase)
            }
            return Piece(offset: offset, count: count, base: base, split: near < base.upperBound ? near : nil)
        }
    }

    package var contentSizes: [Int] { pieces.map(\.count) }

    /// Calls `body` with the whole old file, or with an empty buffer for a patch without one.
    static func withWhole<Result>(
        of file: borrowing Descriptor?, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        switch file {
        case .some(let file):
            let size = try file.facts().size
            if size > 0 { return try MappedFile(file, 0..<size).withBytes(body) }
        case .none: break
        }
        return try body(UnsafeRawBufferPointer(start: nil, count: 0))
    }
}

extension PatchLayout.Piece {
    /// The base-2 logarithm of a window size that reaches from the end of the piece back to the beginning of its prefix.
    var windowLog: Int32 {
        let reach = base.count + MappedFile.alignment + count
        return max(10, Int32(Int.bitWidth - (reach - 1).leadingZeroBitCount))
    }

    /// Calls `body` with the prefix of the piece, which is empty for a patch without an old file.
    func withBase<Result>(of file: borrowing Descriptor?, _ body: (UnsafeRawBufferPointer) throws -> Result) throws
        -> Result
    {
        guard !base.isEmpty else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        switch file {
        case .some(let file): return try MappedFile(file, base, split: split).withBytes(body)
        case .none: throw ArchiveRefusal(.archiveFrames, "it needs the old file", now: nil)
        }
    }
}
