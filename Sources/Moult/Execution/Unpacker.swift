internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import MoultTrust
internal import StepKit
internal import Synchronization

/// Unpacks from a bundle the members that a plan needs.
///
/// Nothing is used before its digest is verified.
struct Unpacker {
    /// Returns the path at which a member is written.
    let place: @Sendable (String) throws -> String
    let release: Manifest
    let bundle: String
    /// The members to write; everything else in the bundle is only verified.
    let members: [String]
    let progress: @Sendable (PrepareContext.Progress) throws -> Void

    /// The members to write, by their paths in the bundle.
    private var wanted: [String: String] {
        let paths = release.databases.map { ($0.bundlePath, $0.member) }
        let others = release.databases.flatMap(\.migrations).map { ($0.member, $0.member) }
        return Dictionary(paths + others) { first, _ in first }.filter { members.contains($0.value) }
    }

    /// Unpacks the bundle, checking its own digest and that of each member.
    func unpack() throws {
        let expected = Self.expected(of: release)
        let total = expected.reduce(0) { $0 + $1.value.size }
        let counter = ProgressCounter("unpack", total: total, tell: progress)
        let wanted = wanted
        var file: DigestedFile?
        try BackgroundDigest.of(bundle) {
            try ConfinedArchive(bundle, stop: { try counter.add(0) }).read(
                named: release.bundle?.file ?? bundle, members: expected.mapValues(\.size)
            ) { name, part in
                switch part {
                case .begin:
                    file = try DigestedFile(path: wanted[name].map(place))
                case .bytes(let bytes):
                    try file?.write(bytes)
                    try counter.add(bytes.count)
                case .end:
                    try verify(name, digest: file?.finish() ?? "", expected[name]?.sha256)
                    file = nil
                }
            }
        } check: {
            try verifyBundle($0)
        }
    }

    /// The size and digest of a member according to the manifest.
    struct Expected {
        let size: Int
        let sha256: String
    }

    private static func expected(of release: Manifest) -> [String: Expected] {
        var expected: [String: Expected] = [:]
        for database in release.databases where database.place == .generation {
            expected[database.bundlePath] = Expected(size: database.size, sha256: database.sha256)
            for migration in database.migrations {
                expected[migration.member] = Expected(size: migration.size, sha256: migration.sha256)
            }
        }
        return expected
    }

    private func verify(_ member: String, digest: String, _ expected: String?) throws {
        if digest == expected { return }
        throw MoultError(
            .digest, what: "\(member) in \(bundle) does not match the manifest",
            why: "its SHA-256 is \(digest.prefix(8))…, and the manifest says \((expected ?? "nothing").prefix(8))…",
            now: "Use the manifest and the bundle of the same release.")
    }

    private func verifyBundle(_ digest: String) throws {
        guard let expected = release.bundle?.sha256, digest != expected else { return }
        throw MoultError(
            .digest, what: "the bundle \(bundle) does not match its manifest",
            why: "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(expected.prefix(8))…",
            now: "Copy or download it again.")
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
