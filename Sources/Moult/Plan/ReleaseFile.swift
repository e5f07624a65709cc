internal import MoultArchive
package import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// The sealed manifest of a release on this machine, as it was read: once for a whole command, so that a file that changes meanwhile
/// cannot be two releases.
package struct ReleaseFile: Sendable {
    package let path: String
    package let bytes: [UInt8]

    /// Reads the manifest. Nothing in it is verified yet.
    package init(_ path: String) throws { (self.path, bytes) = (path, try Self.read(path)) }
    package var product: String { get throws { try Manifest(parsing: bytes, as: .sealed, source: path).product } }

    private static func read(_ path: String) throws -> [UInt8] {
        do {
            if let bytes = try Files.read(path, limit: Manifest.largest) {
                try MistakenManifest.refuse(path, start: bytes)
                return bytes
            }
        } catch let error as MoultError where error.code == .system {
            // A database or a bundle is larger than any manifest.
            if let start = try? Files.beginning(of: path, count: 512) {
                try MistakenManifest.refuse(path, start: start)
            }
            throw error
        }
        throw MoultError(
            .notThere, what: "no manifest at \(path)", why: "no such file",
            now: "Specify the manifest of a release, such as releases/app-1.0.0.json.")
    }
}

/// Recognizes other files that are given instead of a release's manifest, and names the command to use for them.
package enum MistakenManifest {
    /// Rejects a database, a bundle or a draft. If the manifest of a bundle is next to it, `advice` names the command that uses
    /// the manifest.
    package static func refuse(_ path: String, advice: (_ manifest: String) -> Advice) throws {
        // The caller reports files that are missing, or that are not manifests for other reasons.
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file else { return }
        try refuse(path, start: Files.beginning(of: path, count: 512), advice: advice)
        guard facts.size <= Manifest.largest, let bytes = try Files.read(path, limit: Manifest.largest),
            isDraft(bytes, path)
        else { return }
        throw draft(path)
    }

    /// Rejects a database or a bundle by its first bytes.
    static func refuse(
        _ path: String, start: [UInt8],
        advice: (_ manifest: String) -> Advice = { "Install the release from its manifest: \(moult: "apply", $0)" }
    ) throws {
        if DatabaseHeader.begins(start) {
            throw MoultError(
                .manifest, what: "\(path) is a database, not the manifest of a release",
                now: "Pack a release from it: \(moult: "pack", path)")
        }
        guard let kind = ArchiveKind.appearance(of: start) else { return }
        let manifest = ArchiveKind.name(of: path).map { "\($0).json" }
        let isThere = try manifest.flatMap { try Files.factsThroughLinks($0) } != nil
        throw MoultError(
            .manifest, what: "\(path) is an archive (\(kind)), not the manifest of a release",
            now: isThere
                ? advice(manifest ?? "")
                : "Specify the manifest of the release. `moult pack` writes it next to the bundle.")
    }

    /// Runs a check or parser of a manifest; if that fails because the file is a draft or a saved plan, the error says
    /// so.
    static func explaining<R>(_ bytes: [UInt8], _ name: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError where [.unsigned, .manifest].contains(error.code) {
            if isDraft(bytes, name) { throw draft(name, because: error) }
            guard (try? Plan(json: JSON(parsing: bytes, source: name), source: name)) != nil else { throw error }
            throw MoultError(
                error.code, error.outcome, what: "\(name) is a saved plan, not the manifest of a release",
                now: "Apply the plan: \(moult: "apply", "--plan", name)", cause: error)
        }
    }

    private static func isDraft(_ bytes: [UInt8], _ name: String) -> Bool {
        // The errors do not matter, only whether the file can be read in each form.
        (try? Manifest(parsing: bytes, as: .sealed, source: name)) == nil
            && (try? Manifest(parsing: bytes, as: .draft, source: name)) != nil
    }

    private static func draft(_ name: String, because error: MoultError? = nil) -> MoultError {
        MoultError(
            error?.code ?? .manifest, error?.outcome ?? .failed,
            what: "\(name) is a draft, not the manifest of a release",
            now: "Pack a release from it: \(moult: "pack", name)", cause: error)
    }
}
