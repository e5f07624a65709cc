internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import MoultStore
internal import MoultTrust
internal import StepKit
internal import Synchronization

/// Unpacks a bundle of ours on every core: each frame is decoded by a confined process, verified and written at its place, in any order.
///
/// The digest of every frame's content proves what is unpacked: together they cover each byte once. The digests of the
/// bundle and of its members say the same of the same bytes. They are computed where they cost least, because a manifest
/// that contradicts itself is refused: the bundle's meanwhile, those of members while the steps
/// examine what came in (`Pipeline`, `GenerationSealer`).
struct FrameUnpacking {
    let bundle: String
    /// The manifest's facts about the whole bundle.
    let sha256: String
    let frames: Manifest.Frames
    let members: [String: Unpacker.Expected]
    /// What should be written under which name; everything else is only verified.
    let wanted: [String: String]
    let place: @Sendable (String) throws -> String
    let progress: @Sendable (PrepareContext.Progress) throws -> Void

    func unpack() throws {
        let counter = ProgressCounter("unpack", total: members.reduce(0) { $0 + $1.value.size }, tell: progress)
        let declared = zip(frames.packed, frames.content).map { Frame(packedSize: $0, contentSize: $1) }
        let archive = try ConfinedArchive(bundle, stop: { try counter.add(0) })
        guard let (layout, reader) = try archive.bundle(members: members.mapValues(\.size), frames: declared) else {
            throw notSealed("it is not made of frames, as the manifest says")
        }
        let targets = try layout.members.map { member in
            try wanted[member.name].map { Target(try Descriptor(place($0), .create, mode: 0o600)) }
        }
        let digests = Array(frames.sha256.utf8)
        @Sendable func isProven(_ digest: String, _ frame: Int) -> Bool {
            digest.utf8.elementsEqual(digests[64 * frame..<64 * (frame + 1)])
        }
        try BackgroundDigest.of(bundle) {
            try reader.read(threads: Threads.cores) { frame, bytes in
                if try isProven(SHA256.digest(of: bytes).hex, frame) { return }
                throw notSealed("the headers in its frame \(frame) differ")
            } onPiece: { piece in
                let member = layout.members[piece.member]
                let digest = try SHA256.digest(of: piece.bytes).hex
                // A member of at most one frame has two digests in the manifest, which must agree.
                guard isProven(digest, piece.frame),
                    member.frames.count > 1 || digest == members[member.name]?.sha256
                else { throw notSealed("\(member.name) in it differs at byte \(piece.offset) or behind") }
                try targets[piece.member]?.write(piece)
                try counter.add(piece.bytes.count)
            }
        } check: { digest in
            if digest == sha256 { return }
            throw notSealed("its SHA-256 is \(digest.prefix(8))…, and the manifest says \(sha256.prefix(8))…")
        }
    }

    private func notSealed(_ why: String) -> MoultError {
        MoultError(
            .digest, what: "the bundle \(bundle) does not match its manifest", why: why,
            now: "Use the manifest and the bundle of the same release.")
    }
}

/// The file of one member, which several threads write at different places.
private final class Target: Sendable {
    private let file: Descriptor

    init(_ file: consuming Descriptor) { self.file = file }

    /// The disk begins at once, so that the sync at the end is short.
    func write(_ piece: BundleReader.Piece) throws {
        try file.write(piece.bytes, at: piece.offset)
        try file.startWriteback(at: piece.offset, count: piece.bytes.count)
    }
}

/// How far it is, told by one thread at a time.
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
