internal import MoultBasics
package import MoultFiles

/// Reads an untrusted archive: exactly the declared members, with exactly the declared sizes, and nothing else.
///
/// The reader writes nothing to disk; the caller must still compare the output with its digest.
package struct ArchiveReader: ~Copyable {
    private let path: String
    private let kind: ArchiveKind
    private let file: RawFile

    /// The events of a member, in this order.
    package enum Part {
        case begin
        /// The next bytes of the member's content, valid only during the call.
        case bytes(UnsafeRawBufferPointer)
        /// The member is complete and has the declared size.
        case end
    }

    /// Creates a reader for a file of the declared kind.
    package init(_ file: consuming Descriptor, kind: ArchiveKind) throws {
        path = file.path
        self.kind = kind
        self.file = try RawFile(file)
    }

    /// Reads the whole archive once; `members` has the size of each declared member.
    ///
    /// Members arrive in the order of the archive, one after the other.
    package consuming func read(members: [String: Int], onMember: (String, Part) throws -> Void) throws {
        let (path, kind, file) = (path, kind, file)
        try reading(path) {
            do {
                var set = try MemberSet(members)
                guard try kind.isBeginning(of: file) else { throw NotThisFormat() }
                switch kind {
                case .tar(let compression): try Self.readTar(file, compression, &set, onMember)
                case .zip:
                    var coverage: ZipCoverage? = try ZipCoverage(file)
                    try Self.readEntries(LibArchive(.zip, ArchiveInput(file)), &set, &coverage, onMember)
                    try coverage?.finish()
                case .sevenZip:
                    var none: ZipCoverage?
                    try Self.readEntries(LibArchive(.sevenZip, ArchiveInput(file)), &set, &none, onMember)
                    try Self.checkEndOfSevenZip(file)
                }
                try set.checkComplete()
            } catch is NotThisFormat { throw try Self.notThisKind(file, kind) }
        }
    }

    private static func readTar(
        _ file: RawFile, _ compression: ArchiveKind.Compression, _ set: inout MemberSet,
        _ onMember: (String, Part) throws -> Void
    ) throws {
        let stream = try TarStream(file, compression)
        let archive: LibArchive
        do { archive = try LibArchive(.tar, ArchiveInput(next: stream.next)) } catch is NotThisFormat {
            // The content is not that of a tar archive if the compressed data is damaged, which is found at the end of a block.
            while stream.count < decoderMemoryLimit, try !stream.next().isEmpty {}
            throw NotThisFormat()
        }
        var none: ZipCoverage?
        try readEntries(archive, &set, &none, onMember)
        try finishTar(stream, used: archive.bytesUsed)
    }

    /// Reads the data after the end of a tar archive: only zeros up to the end of the last tar record are allowed.
    private static func finishTar(_ stream: TarStream, used: Int) throws {
        // tar pads to 10 KiB, or to the size given with -b; more is not plausible.
        let maxPadding = 1 << 20
        while try !stream.next().isEmpty {
            if stream.count - used > maxPadding { break }
        }
        guard stream.zerosAtEnd >= stream.count - used, stream.count - used <= maxPadding else {
            throw ArchiveRefusal(.archiveGarbage, "unexpected data after the end of the tar archive")
        }
        guard stream.zerosAtEnd >= 1024, stream.count % 512 == 0 else { throw ArchiveRefusal.cut }
    }

    /// Refuses data after the directory of a 7z archive, which is at its end.
    private static func checkEndOfSevenZip(_ file: RawFile) throws {
        var start = LittleEndian(try file.bytes(at: 12, count: 16)[...])
        guard try 32 &+ start.number(8) &+ start.number(8) == file.size else {
            throw ArchiveRefusal(.archiveGarbage, "unexpected data after the end of the 7z archive")
        }
    }

    /// Passes on the content of all entries. `coverage` follows the reader through a zip archive.
    private static func readEntries(
        _ archive: LibArchive, _ set: inout MemberSet, _ coverage: inout ZipCoverage?,
        _ onMember: (String, Part) throws -> Void
    ) throws {
        while let entry = try archive.nextEntry() {
            guard let entryName = entry.name else {
                throw ArchiveRefusal(.archiveName, "it contains a name that is not ASCII text", now: .rename)
            }
            switch entry.kind {
            case .directory:
                try set.takeDirectory(entryName)
                guard entry.size ?? 0 == 0 else {
                    throw ArchiveRefusal(
                        .archiveDamaged, "its directory \"\(printable(entryName))\" has content")
                }
                try coverage?.begin(archive.bytesUsed, isDirectory: true)
            case .other(let what):
                throw ArchiveRefusal(
                    .archiveEntryKind, "its entry \"\(printable(entryName))\" is \(what), not a plain file",
                    now: .plainFiles)
            case .file:
                let (name, size) = try set.take(entryName)
                if let claimed = entry.size, claimed != size {
                    throw ArchiveRefusal.size(of: name, is: "\(claimed)", declared: size)
                }
                try coverage?.begin(archive.bytesUsed, isDirectory: false)
                try onMember(name, .begin)
                try readContent(archive, name, size, onMember)
                try onMember(name, .end)
            }
            coverage?.end(archive.bytesUsed)
        }
    }

    private static func readContent(
        _ archive: LibArchive, _ name: String, _ size: Int, _ onMember: (String, Part) throws -> Void
    ) throws {
        var count = 0
        while let (offset, bytes) = try archive.nextData() {
            guard offset == count else {
                throw ArchiveRefusal(.archiveEntryKind, "its entry \"\(name)\" is a sparse file, not a plain file")
            }
            guard bytes.count <= size - count else { throw ArchiveRefusal.size(of: name, is: "more", declared: size) }
            count += bytes.count
            if !bytes.isEmpty { try onMember(name, .bytes(bytes)) }
        }
        guard count == size else { throw ArchiveRefusal.size(of: name, is: "\(count)", declared: size) }
    }

    /// Returns the refusal of a file whose content contradicts its name, with a description of the content if it is recognized.
    private static func notThisKind(_ file: RawFile, _ kind: ArchiveKind) throws -> ArchiveRefusal {
        if file.size == 0 { return ArchiveRefusal(.archiveCut, "it is empty", now: .copyAgain) }
        let start = try file.bytes(at: 0, count: min(512, file.size))
        if kind == .zip, start.starts(with: "PK".utf8) {
            return ArchiveRefusal(
                .archiveCut, "it does not end as a zip archive does: a part is missing, or other bytes follow")
        }
        let appearance = ArchiveKind.appearance(of: start)
        return ArchiveRefusal(
            .archiveKind,
            "it is not a \(kind), although its name says so"
                + (appearance.map { "; it looks like \($0)" } ?? ""),
            now: .nameOfKind)
    }
}

extension ArchiveKind {
    func isBeginning(of file: RawFile) throws -> Bool {
        let start = try file.bytes(at: 0, count: min(6, file.size))
        return switch self {
        // libarchive checks the details.
        case .tar(.none): true
        // A skippable frame may come first.
        case .tar(.zstd):
            start.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) || start.dropFirst().starts(with: [0x2a, 0x4d, 0x18])
        case .tar(.xz): start == [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]
        case .tar(.gzip): start.starts(with: [0x1f, 0x8b])
        case .tar(.bzip2): start.starts(with: "BZh".utf8)
        case .sevenZip: start == [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c]
        // Any bytes may come first, because the end record identifies a zip file.
        case .zip: !start.isEmpty
        }
    }
}
