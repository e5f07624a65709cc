internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// The sealed manifest of a release on this machine, as it was read: once for a whole command, so that a file that changes meanwhile
/// cannot be two releases.
package struct ReleaseFile: Sendable {
    /// The path as given.
    package let path: String
    package let bytes: [UInt8]

    /// Reads the manifest. Nothing in it is verified yet.
    package init(_ path: String) throws { (self.path, bytes) = (path, try Self.read(path)) }

    /// Returns the product of the release, which is not verified.
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
