internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import MoultTrust
internal import StepKit
internal import Synchronization

/// Unpacks a bundle in moult's format on every core: sandboxed processes decode the frames, and each frame is written at its
/// offset, in any order.
///
/// Members that are written are verified later, while the steps examine them (`UnpackedDigests`): SQLite's check of a large
/// table occupies only one core, so the digests can use the others. Members that are not written are verified here.
struct FrameUnpacker {
    let bundle: String
    /// The manifest's digest of the whole bundle.
    let sha256: String
    let frames: Manifest.Frames
    let members: [String: Unpacker.Expected]
    /// The members to write, by their paths in the bundle; everything else is only verified.
    let wanted: [String: String]
    let place: @Sendable (String) throws -> String
    /// The names in the bundle of the members that the publisher's proof covers.
    let proven: Set<String>
    let progress: @Sendable (PrepareContext.Progress) throws -> Void

    func unpack() throws -> UnpackedDigests {
        let counter = ProgressCounter("unpack", total: members.reduce(0) { $0 + $1.value.size }, tell: progress)
        let declared = zip(frames.packed, frames.content).map { Frame(packedSize: $0, contentSize: $1) }
        let archive = try ConfinedArchive(bundle, stop: { try counter.add(0) })
        guard let (layout, reader) = try archive.bundle(members: members.mapValues(\.size), frames: declared) else {
            throw MoultError(unsealed: bundle, "it does not have the frames that the manifest lists")
        }
        let targets = try layout.members.map { member in
            try wanted[member.name].map { Target(try Descriptor(place($0), .create, mode: 0o600)) }
        }
        let expected = Array(frames.sha256.utf8)
        @Sendable func verify(_ frame: Int, _ bytes: UnsafeRawBufferPointer, _ why: String) throws {
            let digest = try SHA256.digest(of: bytes).hex
            if digest.utf8.elementsEqual(expected[64 * frame..<64 * (frame + 1)]) { return }
            throw MoultError(unsealed: bundle, why)
        }
        try reader.read(threads: Threads.cores) { frame, bytes in
            try verify(frame, bytes, "the headers in frame \(frame) differ")
        } onPiece: { piece in
            if let target = targets[piece.member] {
                try target.write(piece)
            } else {
                let name = layout.members[piece.member].name
                try verify(piece.frame, piece.bytes, "\(name) in the bundle differs at byte \(piece.offset) or later")
            }
            try counter.add(piece.bytes.count)
        }
        return try digests(of: layout, expected)
    }

    private func digests(of layout: BundleLayout, _ expected: [UInt8]) throws -> UnpackedDigests {
        let files = try layout.members.compactMap { member -> UnpackedFile? in
            guard let name = wanted[member.name], let facts = members[member.name] else { return nil }
            let parts = member.frames.map { frame in
                (frames.content[frame], String(decoding: expected[64 * frame..<64 * (frame + 1)], as: UTF8.self))
            }
            return try UnpackedFile(
                place(name), name: member.name, sha256: facts.sha256, frames: parts,
                isProven: proven.contains(member.name))
        }
        let areProven = files.allSatisfy(\.isProven)
        return try UnpackedDigests(
            bundle: bundle, sha256: sha256, files: files,
            threads: areProven ? Threads.cores : max(1, Threads.cores - 1))
    }
}

/// The file of one member, which several threads write at different offsets.
private final class Target: Sendable {
    private let file: Descriptor

    init(_ file: consuming Descriptor) { self.file = file }

    /// Writes a piece, and starts its writeback immediately, so that the sync at the end is short.
    func write(_ piece: BundleReader.Piece) throws {
        try file.write(piece.bytes, at: piece.offset)
        try file.startWriteback(at: piece.offset, count: piece.bytes.count)
    }
}

/// Counts the progress of several threads, and reports it from one thread at a time.
final class ProgressCounter: Sendable {
    private let done = Mutex(0)
    private let what: String
    private let total: Int
    private let tell: @Sendable (PrepareContext.Progress) throws -> Void

    init(_ what: String, total: Int, tell: @escaping @Sendable (PrepareContext.Progress) throws -> Void) {
        (self.what, self.total, self.tell) = (what, total, tell)
    }

    func add(_ count: Int) throws {
        try done.withLock { done in
            done += count
            try tell(.init(what, done: done, total: total))
        }
    }
}
