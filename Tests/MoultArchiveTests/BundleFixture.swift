import MoultArchive
import MoultFiles
import Synchronization
import Testing

/// A bundle with members of unusual sizes.
enum BundleSample {
    /// A member of more than three frames, a member of exactly one frame, a small member, and empty members in the
    /// middle and at the end.
    static let members: [(name: String, bytes: [UInt8])] = [
        ("cache.db", []),
        ("food.db", noise(3 << 20, seed: 1) + Array("a rest".utf8)),
        ("migrations/user/0002-notes.sql", Array("CREATE TABLE note (text);\n".utf8)),
        ("pantry.db", noise(1 << 20, seed: 2)),
        ("thumbs.db", []),
    ]
    static let sizes = members.map { ($0.name, $0.bytes.count) }
    static let modified = 1_700_000_000

    static func layout() throws -> BundleLayout { try BundleLayout(members: sizes, modified: modified) }

    /// Packs the sample into a file.
    @discardableResult static func write(
        to path: String, threads: Int = 2, level: Int = 3,
        onFrame: @Sendable (Int, UnsafeRawBufferPointer) throws -> Void = { _, _ in }
    ) throws -> [Frame] {
        let file = try Descriptor(path, .create)
        return try BundleWriter(layout(), level: level, threads: threads).write(onFrame: onFrame) {
            try file.write($0)
        } source: { member, write in
            // The pieces are aligned neither to frames nor to blocks.
            let bytes = members[member].bytes
            for start in stride(from: 0, to: bytes.count, by: 300_001) {
                try bytes[start..<min(start + 300_001, bytes.count)].withUnsafeBytes(write)
            }
        }
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

/// Collects the pieces of a bundle from several threads.
final class Pieces: Sendable {
    private let contents: Mutex<[[UInt8]]>
    let frames = Mutex<[Int]>([])

    init(_ layout: BundleLayout) {
        contents = Mutex(layout.members.map { [UInt8](repeating: 0xee, count: $0.size) })
    }

    func add(_ piece: BundleReader.Piece) {
        contents.withLock {
            $0[piece.member].replaceSubrange(piece.offset..<piece.offset + piece.bytes.count, with: piece.bytes)
        }
        frames.withLock { $0.append(piece.frame) }
    }

    var all: [[UInt8]] { contents.withLock { $0 } }
}
