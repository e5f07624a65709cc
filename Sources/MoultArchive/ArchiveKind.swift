internal import MoultBasics

/// The kind of an archive, as declared by its file name. It is never guessed from the content.
package enum ArchiveKind: Hashable, Sendable {
    case tar(Compression)
    case zip, sevenZip

    /// How a whole tar file is compressed.
    package enum Compression: Hashable, Sendable, CaseIterable {
        case none, zstd, xz, gzip, bzip2

        var name: String { "\(self)" }
    }

    private static let endings: [(ending: String, kind: ArchiveKind)] = [
        (".tar.zst", .tar(.zstd)), (".tar.xz", .tar(.xz)), (".tar.gz", .tar(.gzip)),
        (".tar.bz2", .tar(.bzip2)), (".tar", .tar(.none)), (".tzst", .tar(.zstd)), (".txz", .tar(.xz)),
        (".tgz", .tar(.gzip)), (".tbz2", .tar(.bzip2)), (".zip", .zip), (".7z", .sevenZip),
    ]

    /// Returns whether a file name has the extension of an archive.
    package static func isArchive(fileName name: String) -> Bool { endings.contains { name.hasSuffix($0.ending) } }

    /// Returns a file name without the extension of an archive; nil if it has a different extension.
    package static func name(of path: String) -> String? {
        endings.first { path.hasSuffix($0.ending) }.map { String(path.dropLast($0.ending.count)) }
    }

    /// Determines the kind from the extension of a file name; throws if the extension is not supported.
    package init(fileName name: String) throws {
        guard let (_, kind) = Self.endings.first(where: { name.hasSuffix($0.ending) }) else {
            let endings = Self.endings.map(\.ending).joined(separator: ", ")
            throw MoultError(
                .archiveKind, what: "unknown archive type: \(name)",
                why: "the supported extensions are \(endings)",
                now: "Rename it if its extension is wrong, or pack it again as .tar.zst.")
        }
        self = kind
    }
}

extension ArchiveKind: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tar(.none): "tar archive"
        case .tar(let compression): "tar archive compressed with \(compression.name)"
        case .zip: "zip archive"
        case .sevenZip: "7z archive"
        }
    }
}

extension ArchiveKind {
    /// Returns a description of a file for errors, based on its first bytes; nil if they are not recognized.
    package static func appearance(of start: [UInt8]) -> String? {
        let magics: [(bytes: [UInt8], what: String)] = [
            ([0x28, 0xb5, 0x2f, 0xfd], "data compressed with zstd"),
            ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], "data compressed with xz"),
            ([0x1f, 0x8b], "data compressed with gzip"),
            ([0x42, 0x5a, 0x68], "data compressed with bzip2"),
            (Array("PK\u{3}\u{4}".utf8), "a zip archive"),
            ([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], "a 7z archive"),
            (Array("SQLite format 3\0".utf8), "a SQLite database"),
            (Array("Rar!".utf8), "a RAR archive"),
            (Array("MSCF".utf8), "a CAB archive"),
            (Array("xar!".utf8), "a XAR archive"),
            (Array("!<arch>".utf8), "an ar archive"),
        ]
        if let known = magics.first(where: { start.starts(with: $0.bytes) }) { return known.what }
        return start.dropFirst(257).starts(with: "ustar".utf8) ? "a tar archive" : nil
    }
}
