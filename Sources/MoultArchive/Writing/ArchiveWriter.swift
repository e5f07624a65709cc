internal import MoultBasics

/// Writes bundles: tar (zstd, or plain, gzip or xz for programs without zstd) and zip.
package struct ArchiveWriter {
    private let kind: ArchiveKind
    private let members: [(name: String, size: Int)]
    private let modified: Int
    private let level: Int
    private let threads: Int

    /// A source of content: gets a member's index, and a function that receives each piece of its content.
    package typealias Source = (_ member: Int, _ write: (UnsafeRawBufferPointer) throws -> Void) throws -> Void

    /// Prepares an archive with these members in this order; `modified` is their modification time, in seconds since
    /// 1970. The same members give the same bytes, regardless of the number of threads, which only zstd uses.
    package init(
        _ kind: ArchiveKind, members: [(name: String, size: Int)], modified: Int, level: Int = 6, threads: Int = 1
    ) throws {
        try packing {
            try MemberSet.check(packed: members.map(\.name))
            let levels: ClosedRange<Int>
            switch kind {
            case .tar(.bzip2), .sevenZip:
                throw ArchiveRefusal(.archivePacking, "a \(kind) is not supported here", now: .otherKind)
            case .tar(.none): levels = level...level
            case .tar(let compression): levels = compression.levels
            case .zip: levels = 1...9
            }
            guard levels.contains(level) else {
                throw ArchiveRefusal(
                    .archivePacking,
                    "level \(level) is not valid for a \(kind), whose levels are \(levels.lowerBound) to \(levels.upperBound)",
                    now: .otherLevel)
            }
        }
        (self.kind, self.members, self.modified) = (kind, members, modified)
        (self.level, self.threads) = (level, threads)
    }

    /// Writes the archive; `source` is called for each member, in order, and must provide exactly the declared number of bytes.
    package func write(output: (UnsafeRawBufferPointer) throws -> Void, source: Source) throws {
        try packing {
            try withoutActuallyEscaping(output) { output in
                switch kind {
                case .tar(.zstd):
                    try writeTar(ZstdEncoder(level: level, threads: threads, size: tarSize, output), source)
                case .tar(.gzip): try writeTar(DeflateEncoder(.gzip, level: level, output), source)
                case .tar(.xz): try writeTar(XzEncoder(level: level, output), source)
                // The initializer refuses other compressions, and 7z.
                case .tar, .sevenZip: try writeTar(PlainEncoder(output), source)
                case .zip: try writeZip(ZipWriter(modified: modified, level: level, output), source)
                }
            }
        }
    }

    private var tarSize: Int {
        members.reduce(TarHeader.end.count) {
            $0 + TarHeader.blockSize + $1.size + TarHeader.padding($1.size).count
        }
    }

    private func writeTar(_ encoder: any Encoder, _ source: Source) throws {
        func put(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes(encoder.encode) }
        for (index, member) in members.enumerated() {
            try put(TarHeader.block(name: member.name, size: member.size, modified: modified))
            try pass(index, source, to: encoder.encode)
            try put(TarHeader.padding(member.size))
        }
        try put(TarHeader.end)
        try encoder.finish()
    }

    private func writeZip(_ zip: ZipWriter, _ source: Source) throws {
        for (index, member) in members.enumerated() {
            try zip.begin(member.name, size: member.size)
            try pass(index, source, to: zip.write)
            try zip.end()
        }
        try zip.finish()
    }

    /// Passes on the content of a member; throws unless it has exactly the declared size.
    private func pass(_ index: Int, _ source: Source, to write: @escaping (UnsafeRawBufferPointer) throws -> Void)
        throws
    {
        let (name, size) = members[index]
        func wrong(_ found: String) -> MoultError {
            MoultError(
                .archivePacking, what: "cannot pack \(name)", why: "moult read \(found) from the file",
                now: "Stop the programs that write to the file, then pack again.")
        }
        var count = 0
        try source(index) { bytes in
            count += bytes.count
            guard count <= size else { throw wrong("more than \(size) bytes") }
            try write(bytes)
        }
        guard count == size else { throw wrong("\(count) bytes instead of \(size)") }
    }
}
