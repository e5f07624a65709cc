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
                    let layout = try ZipLayout(of: file, maxEntries: set.maxEntries)
                    try Self.readEntries(ZipContent(file, layout), &set, onMember)
                }
                try set.checkComplete()
            } catch is NotThisFormat { throw try Self.notThisKind(file, kind) }
        }
    }

    private static func readTar(
        _ file: RawFile, _ compression: ArchiveKind.Compression, _ set: inout MemberSet,
        _ onMember: (String, Part) throws -> Void
    ) throws {
        let stream = PlainStream({ try file.next() }, decoder: try compression.decoder())
        let archive = try LibArchive(feed: ArchiveInput(next: stream.next))
        try readEntries(archive, &set, onMember)
        try finishTar(stream, used: archive.bytesUsed)
    }

    /// Reads the data after the end of a tar archive: only zeros up to the end of the last tar record are allowed.
    private static func finishTar(_ stream: PlainStream, used: Int) throws {
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

    private static func readEntries(
        _ archive: any EntrySource, _ set: inout MemberSet, _ onMember: (String, Part) throws -> Void
    ) throws {
        while let entry = try archive.nextEntry() {
            guard let entryName = entry.name else {
                throw ArchiveRefusal(.archiveName, "it contains a name that is not ASCII text", now: .rename)
            }
            switch entry.kind {
            case .directory: try set.takeDirectory(entryName)
            case .other(let what):
                throw ArchiveRefusal(
                    .archiveEntryKind, "its entry \"\(printable(entryName))\" is \(what), not a plain file",
                    now: .plainFiles)
            case .file:
                let (name, size) = try set.take(entryName)
                if let claimed = entry.size, claimed != size {
                    throw ArchiveRefusal.size(of: name, is: "\(claimed)", declared: size)
                }
                try onMember(name, .begin)
                try readContent(archive, name, size, onMember)
                try onMember(name, .end)
            }
        }
    }

    private static func readContent(
        _ archive: any EntrySource, _ name: String, _ size: Int, _ onMember: (String, Part) throws -> Void
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
        let appearance = ArchiveKind.appearance(of: start)
        return ArchiveRefusal(
            .archiveKind,
            "it is not a \(kind), although its name says so"
                + (appearance.map { "; it looks like \($0)" } ?? ""),
            now: .nameOfKind)
    }
}

extension ArchiveKind {
    fileprivate func isBeginning(of file: RawFile) throws -> Bool {
        let start = try file.bytes(at: 0, count: min(6, file.size))
        return switch self {
        // libarchive checks the details.
        case .tar(.none): true
        // A skippable frame may come first.
        case .tar(.zstd):
            start.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) || start.dropFirst().starts(with: [0x2a, 0x4d, 0x18])
        case .tar(.xz): start == [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]
        case .tar(.gzip): start.starts(with: [0x1f, 0x8b])
        // Any bytes may come first, because the end record identifies a zip file.
        case .zip: !start.isEmpty
        }
    }
}

extension ArchiveKind.Compression {
    fileprivate func decoder() throws -> any Decoder {
        switch self {
        case .none: PlainDecoder()
        case .zstd: try ZstdDecoder()
        case .xz: try XzDecoder()
        case .gzip: try DeflateDecoder(.gzip)
        }
    }
}
