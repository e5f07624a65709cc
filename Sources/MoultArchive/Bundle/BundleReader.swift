internal import MoultBasics

/// Unpacks a moult bundle on several threads: exactly the members of the layout, and nothing else.
package struct BundleReader {
    private let layout: BundleLayout
    private let frames: any FrameSource
    private let path: String

    /// A piece of a member's content, passed on by the thread that decoded it.
    package struct Piece {
        package let frame: Int
        package let member: Int
        /// The offset of the piece in the member.
        package let offset: Int
        /// Valid only during the call.
        package let bytes: UnsafeRawBufferPointer
    }

    /// Creates a reader for a file whose declared frames must match the layout. `source` opens the file for decoding.
    package init(
        _ path: String, layout: BundleLayout, frames: [Frame], from source: () throws -> any FrameSource
    ) throws {
        try reading(path) {
            guard frames.map(\.contentSize) == layout.contentSizes else {
                throw ArchiveRefusal(.archiveFrames, "its frames do not match the declared members")
            }
        }
        (self.path, self.layout, self.frames) = (path, layout, try source())
    }

    /// Decodes each frame once; pieces arrive in any order and on several threads at the same time.
    package func read(
        threads: Int, onHeader: @Sendable (_ frame: Int, UnsafeRawBufferPointer) throws -> Void = { _, _ in },
        onPiece: @Sendable (Piece) throws -> Void
    ) throws {
        let layout = layout
        try frames.read(threads: threads) { index, bytes in
            switch layout.parts[index] {
            case .tar(let expected):
                try check(bytes, expected)
                try onHeader(index, bytes)
            case .content(let member, let offset, _):
                try onPiece(Piece(frame: index, member: member, offset: offset, bytes: bytes))
            }
        }
    }

    /// Decodes one member after the other, as `ArchiveReader` does.
    package func readInOrder(onMember: (String, ArchiveReader.Part) throws -> Void) throws {
        let decode = try frames.decoder(into: nil)
        for (index, part) in layout.parts.enumerated() {
            if case .tar(let expected) = part { try check(decode(index), expected) }
        }
        for member in layout.members {
            try onMember(member.name, .begin)
            for frame in member.frames { try onMember(member.name, .bytes(decode(frame))) }
            try onMember(member.name, .end)
        }
    }

    private func check(_ headers: UnsafeRawBufferPointer, _ expected: [UInt8]) throws {
        try reading(path) {
            guard headers.elementsEqual(expected) else {
                throw ArchiveRefusal(.archiveFrames, "its tar headers do not match the declared members")
            }
        }
    }
}
