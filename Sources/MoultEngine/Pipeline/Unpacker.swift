internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultStore
internal import MoultTrust
internal import StepKit

/// Takes the members that a plan needs out of the bundle, into the transaction's own directory.
///
/// One pass: digests are computed on the way, and nothing is used before they fit.
struct Unpacker {
    /// Where a member is written.
    let place: @Sendable (String) throws -> String
    let release: Manifest
    let bundle: String
    /// What shall be written; everything else in the bundle is only proven.
    let members: [String]
    let progress: @Sendable (PrepareContext.Progress) throws -> Void

    func unpack() throws {
        let expected = Self.expected(of: release)
        if let sealed = release.bundle, let frames = sealed.frames {
            try FrameUnpacking(
                bundle: bundle, sha256: sealed.sha256, frames: frames, members: expected,
                wanted: members, place: place, progress: progress
            ).unpack()
        } else {
            try stream(expected)
        }
    }

    /// A bundle of any kind: its own digest and each member's, computed while it streams by.
    private func stream(_ expected: [String: Expected]) throws {
        let kind = try ArchiveKind(fileName: release.bundle?.file ?? bundle)
        let whole = GrowingDigest()
        let total = expected.reduce(0) { $0 + $1.value.size }
        var done = 0
        var file: DigestedFile?
        try ArchiveReader(Descriptor(bundle, .read), kind: kind).read(members: expected.mapValues(\.size)) {
            try whole.update($0)
        } onMember: { name, part in
            switch part {
            case .begin:
                file = try DigestedFile(path: members.contains(name) ? place(name) : nil)
            case .bytes(let bytes):
                try file?.write(bytes)
                done += bytes.count
                try progress(.init("unpack", done: done, total: total))
            case .end:
                try prove(name, digest: file?.finish() ?? "", expected[name]?.sha256)
                file = nil
            }
        }
        try proveBundle(whole.finish())
    }

    /// What the manifest says of a member.
    struct Expected {
        let size: Int
        let sha256: String
    }

    private static func expected(of release: Manifest) -> [String: Expected] {
        var expected: [String: Expected] = [:]
        for database in release.databases where database.place == .generation {
            expected[database.member] = Expected(size: database.size, sha256: database.sha256)
            for migration in database.migrations {
                expected[migration.member] = Expected(size: migration.size, sha256: migration.sha256)
            }
        }
        return expected
    }

    private func prove(_ member: String, digest: String, _ expected: String?) throws {
        if digest == expected { return }
        throw MoultError(
            .digest, what: "\(member) in \(bundle) is not what the manifest says",
            why: "its SHA-256 is \(digest.prefix(8))…, and the manifest says \((expected ?? "nothing").prefix(8))…",
            now: "Get manifest and bundle of the same release.")
    }

    private func proveBundle(_ digest: String) throws {
        guard let expected = release.bundle?.sha256, digest != expected else { return }
        throw MoultError(
            .digest, what: "the bundle \(bundle) is not the one that was sealed",
            why: "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(expected.prefix(8))…",
            now: "Copy or download it again.")
    }
}
