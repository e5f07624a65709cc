import MoultArchive
import MoultBasics
import MoultFiles

/// A bundle with members of unusual sizes.
enum BundleSample {
    /// A large member, small members, and empty members at the beginning and at the end.
    static let members: [(name: String, bytes: [UInt8])] = [
        ("cache.db", []),
        ("food.db", noise(3 << 20, seed: 1) + Array("a rest".utf8)),
        ("migrations/user/0002-notes.sql", Array("CREATE TABLE note (text);\n".utf8)),
        ("pantry.db", noise(1 << 20, seed: 2)),
        ("thumbs.db", []),
    ]
    static let sizes = members.map { ($0.name, $0.bytes.count) }
    static let modified = 1_700_000_000

    /// Packs the sample into a file, whose extension determines the format.
    static func write(to path: String, threads: Int = 2, level: Int = 3) throws {
        let file = try Descriptor(path, .create)
        try writer(ArchiveKind(fileName: path), threads: threads, level: level).write {
            try file.write($0)
        } source: { member, write in
            // The pieces are not aligned to blocks.
            let bytes = members[member].bytes
            for start in stride(from: 0, to: bytes.count, by: 300_001) {
                try bytes[start..<min(start + 300_001, bytes.count)].withUnsafeBytes(write)
            }
        }
    }

    static func writer(_ kind: ArchiveKind = .tar(.zstd), threads: Int = 2, level: Int = 3) throws -> ArchiveWriter {
        try ArchiveWriter(kind, members: sizes, modified: modified, level: level, threads: threads)
    }

    /// Reads a file without libarchive; returns the name and content of each member.
    static func read(_ path: String) throws -> [(name: String, bytes: [UInt8])] {
        var contents: [(name: String, bytes: [UInt8])] = []
        try BundleReader(Descriptor(path, .read)).read { member, part in
            switch part {
            case .begin: contents.append((member.name, []))
            case .bytes(let bytes): contents[contents.count - 1].bytes += bytes
            case .end: break
            }
        }
        return contents
    }

    /// Returns bytes that compress a little.
    private static func noise(_ count: Int, seed: UInt64) -> [UInt8] {
        var state = seed
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 60)
        }
    }
}
