internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import MoultTrust
internal import StepKit

/// A file in a bundle, and its expected content.
struct Member {
    let name: String
    /// The name of the unpacked file; nil for a file that is only verified.
    let file: String?
    let size: Int
    /// The digest; nil if the file is not declared.
    var sha256: String?

    static func all(of manifest: Manifest) -> [Member] {
        manifest.databases.filter { $0.place == .generation }.flatMap { database in
            [Member(name: database.bundlePath, file: database.member, size: database.size, sha256: database.sha256)]
                + database.migrations.map { Member(name: $0.member, file: nil, size: $0.size, sha256: $0.sha256) }
        }
    }
}

/// The databases of a bundle in a scratch directory, each verified by size and, if declared, by digest.
final class UnpackedBundle: Sendable {
    private let bundle: String
    private let scratch: ScratchDirectory
    private let sha256: String
    private let names: Set<String>

    init(_ bundle: String, members: [Member], _ progress: (_ done: Int, _ total: Int) throws -> Void) throws {
        self.bundle = bundle
        let scratch = try ScratchDirectory()
        let total = members.reduce(0) { $0 + $1.size }
        let expected = Dictionary(members.map { ($0.name, $0) }) { first, _ in first }
        var done = 0
        var file: DigestedFile?
        var whole = ""
        try BackgroundDigest.of(bundle) {
            try ConfinedArchive(bundle).read(named: bundle, members: expected.mapValues(\.size)) { name, part in
                switch part {
                case .begin:
                    // Migrations are only verified, because they are not read here.
                    file = try DigestedFile(path: expected[name]?.file.map { "\(scratch.path)/\($0)" })
                case .bytes(let bytes):
                    try file?.write(bytes)
                    done += bytes.count
                    try progress(done, total)
                case .end:
                    try Self.verify(name, in: bundle, digest: file?.finish() ?? "", expected[name]?.sha256)
                    file = nil
                }
            }
        } check: {
            whole = $0
        }
        self.scratch = scratch
        sha256 = whole
        names = Set(members.compactMap(\.file))
    }

    private static func verify(_ name: String, in bundle: String, digest: String, _ expected: String?) throws {
        guard let expected, digest != expected else { return }
        throw MoultError(
            .subject, what: "\(name) in \(bundle) does not match the manifest",
            why: "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(expected.prefix(8))…",
            now: "Use the manifest and the bundle of the same release.")
    }

    func path(_ member: String) -> String? { names.contains(member) ? "\(scratch.path)/\(member)" : nil }

    /// Throws unless the bundle has the digest in the manifest.
    func verify(sha256 expected: String) throws {
        guard sha256 != expected else { return }
        throw MoultError(
            .subject, what: "the bundle \(bundle) does not match its manifest",
            why: "its SHA-256 is \(sha256.prefix(8))…, and the manifest says \(expected.prefix(8))…",
            now: "Use the manifest and the bundle of the same release.")
    }
}
