internal import MoultBasics
package import MoultFiles

/// Reads a bundle that `moult pack` made as .tar.zst, without libarchive: for apps that have no sandboxed process, and to list a
/// bundle whose manifest is missing. Refuses every archive whose headers moult would have written in another way.
package struct BundleReader: ~Copyable {
    private let path: String
    private let file: RawFile

    package init(_ file: consuming Descriptor) throws {
        path = file.path
        self.file = try RawFile(file)
    }

    /// A member of the bundle, as its header describes it.
    package typealias Member = (name: String, size: Int)

    /// Reads the bundle once. Members arrive in order; the content is valid only during the call.
    package consuming func read(onMember: (Member, ArchiveReader.Part) throws -> Void) throws {
        let (path, file) = (path, file)
        try reading(path) {
            guard try file.size == 0 || ArchiveKind.tar(.zstd).isBeginning(of: file) else {
                throw BundleContent.foreign
            }
            var content = try BundleContent(file)
            while let member = try content.header() {
                try onMember(member, .begin)
                try content.take(member.size) { try onMember(member, .bytes($0)) }
                try onMember(member, .end)
                try content.skipZeros(TarHeader.padding(member.size).count)
            }
            try content.finish()
        }
    }

    /// The tar archive in a bundle.
    private struct BundleContent: ~Copyable {
        private let stream: ZstdStream
        private var rest = UnsafeRawBufferPointer(start: nil, count: 0)

        static var foreign: ArchiveRefusal {
            ArchiveRefusal(.archiveKind, "`moult pack` did not make it", now: .sameRelease)
        }

        init(_ file: RawFile) throws { stream = try ZstdStream(file) }

        /// Returns the next header; nil at the end of the archive.
        mutating func header() throws -> BundleReader.Member? {
            var block: [UInt8] = []
            try take(TarHeader.blockSize) { block += $0 }
            if block.allSatisfy({ $0 == 0 }) { return nil }
            guard let fields = block.withUnsafeBytes(TarHeader.fields) else { throw Self.foreign }
            return fields
        }

        /// Passes on exactly this number of bytes.
        mutating func take(_ count: Int, _ use: (UnsafeRawBufferPointer) throws -> Void) throws {
            var left = count
            while left > 0 {
                if rest.isEmpty { rest = try stream.next() }
                if rest.isEmpty { throw ArchiveRefusal.cut }
                let part = UnsafeRawBufferPointer(rebasing: rest[..<min(left, rest.count)])
                try use(part)
                rest = UnsafeRawBufferPointer(rebasing: rest[part.count...])
                left -= part.count
            }
        }

        mutating func skipZeros(_ count: Int) throws {
            try take(count) { bytes in
                guard bytes.allSatisfy({ $0 == 0 }) else { throw Self.foreign }
            }
        }

        /// Reads the end of the archive, of which the first block was read as a header. Nothing may follow.
        mutating func finish() throws {
            try skipZeros(TarHeader.end.count - TarHeader.blockSize)
            guard rest.isEmpty, try stream.next().isEmpty else {
                throw ArchiveRefusal(.archiveGarbage, "unexpected data after the end of the tar archive")
            }
        }
    }
}
