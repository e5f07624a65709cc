internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Recognizes other files that are given instead of a release's manifest, and names the command to use for them.
enum MistakenManifest {
    /// Rejects a database or a bundle by its first bytes.
    static func refuse(_ path: String, start: [UInt8]) throws {
        if start.starts(with: "SQLite format 3\0".utf8) {
            throw MoultError(
                .manifest, what: "\(path) is a database, not the manifest of a release",
                now: "Pack a release from it: \(shellLine(["moult", "pack", path]))")
        }
        guard let kind = ArchiveKind.appearance(of: start) else { return }
        let manifest = ArchiveKind.name(of: path).map { "\($0).json" }
        let isThere = try manifest.flatMap { try Files.factsThroughLinks($0) } != nil
        throw MoultError(
            .manifest, what: "\(path) is an archive (\(kind)), not the manifest of a release",
            now: isThere
                ? "Install the release from its manifest: \(shellLine(["moult", "apply", manifest ?? ""]))"
                : "Specify the manifest of the release. `moult pack` writes it next to the bundle.")
    }

    /// Runs a check or parser of a manifest; if that fails because the file is a draft, the error says so.
    static func explaining<R>(_ bytes: [UInt8], _ name: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError
            where [.unsigned, .manifest].contains(error.code)
        {
            guard (try? Manifest(parsing: bytes, as: .sealed, source: name)) == nil,
                (try? Manifest(parsing: bytes, as: .draft, source: name)) != nil
            else { throw error }
            throw MoultError(
                error.code, error.outcome, what: "\(name) is a draft, not the manifest of a release",
                now: "Pack a release from it: \(shellLine(["moult", "pack", name]))", cause: error)
        }
    }
}
