internal import MoultFiles

/// The division of a patch: the new file in pieces, each a separate frame that is made from the old file.
///
/// A frame has either the differences to the whole old file, or zstd data that refers to a part of it. The sizes of both
/// files determine it, so maker and user of a patch arrive at the same division.
package struct PatchLayout: Hashable, Sendable {
    package struct Piece: Hashable, Sendable {
        /// Where in the new file it lies.
        package let offset: Int
        package let count: Int
        /// The part of the old file that zstd looks back at: all of it, if it can look back so far.
        package let base: Range<Int>
        /// Content from here on comes first, so that the most similar content is nearest; nil if nothing is moved.
        package let split: Int?
    }

    package let pieces: [Piece]

    /// Small enough that several fit into the memory of an unpacking, large enough that their number costs nothing.
    private static let pieceSize = 16 << 20
    /// How much of the old file behind the place of a piece is near it, too.
    private static let lookahead = 4 << 20
    /// zstd looks back so far at most, over the piece itself and the zeros of a split.
    static let farthest = 1 << 31
    private static let mostBase = farthest - pieceSize - MappedFile.alignment

    /// `baseSize` is 0 for a patch that needs no old file.
    package init(baseSize: Int, resultSize: Int) {
        pieces = stride(from: 0, to: resultSize, by: Self.pieceSize).map { offset in
            let count = min(Self.pieceSize, resultSize - offset)
            let place = Int(Double(offset + count) / Double(resultSize) * Double(baseSize))
            let near = MappedFile.roundedUp(place + Self.lookahead)
            var base = 0..<baseSize
            if baseSize > Self.mostBase {
                // As much before the place as behind it, if the file has that much.
                let first = max(0, min(near - Self.mostBase / 2, MappedFile.roundedUp(baseSize - Self.mostBase)))
                let start = first / MappedFile.alignment * MappedFile.alignment
                base = start..<min(baseSize, start + Self.mostBase)
            }
            return Piece(offset: offset, count: count, base: base, split: near < base.upperBound ? near : nil)
        }
    }

    package var contentSizes: [Int] { pieces.map(\.count) }

    /// Calls `body` with all of the old file, which is empty for a patch without one.
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
    /// The window that reaches from the end of the piece back to the beginning of what is before it.
    var windowLog: Int32 {
        let reach = base.count + MappedFile.alignment + count
        return max(10, Int32(Int.bitWidth - (reach - 1).leadingZeroBitCount))
    }

    /// Calls `body` with what the piece looks back at, which is empty for a patch without an old file.
    func withBase<Result>(of file: borrowing Descriptor?, _ body: (UnsafeRawBufferPointer) throws -> Result) throws
        -> Result
    {
        guard !base.isEmpty else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        switch file {
        case .some(let file): return try MappedFile(file, base, split: split).withBytes(body)
        case .none: throw ArchiveRefusal(.archiveFrames, "it needs the file that it was made from", now: nil)
        }
    }
}
