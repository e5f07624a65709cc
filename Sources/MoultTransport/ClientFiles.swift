internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// The files with which a client proves to a server who it is: a TLS certificate with its key, and headers such as tokens.
package struct ClientFiles: Sendable, Equatable {
    /// A certificate in PEM form. Without `key`, the file has the key as well.
    package var certificate: String?
    package var key: String?
    /// A file with one header in each line.
    package var headers: String?
    package init() {}

    /// Reads the files. Their content is sent only to the hosts of these locations, and only over TLS.
    package func proof(for places: [Location]) throws -> ClientFiles.Proof? {
        if self == ClientFiles() { return nil }
        var proof = ClientFiles.Proof(
            places: places.compactMap { place in
                switch place {
                case .file: nil
                case .web(let url): url.withSecrets
                case .registry(let file): file.repository.root
                }
            })
        proof.certificate = try certificate.map { try Self.read($0, isSecret: key == nil) }
        proof.key = try key.map { try Self.read($0, isSecret: true) } ?? proof.certificate
        if let headers {
            proof.headers = try Self.read(headers, isSecret: true).split(separator: "\n").map { String($0) }
            guard proof.headers.allSatisfy(Self.isHeader) else {
                throw MoultError(
                    .credentials, what: "cannot use the headers in \(headers)",
                    why: "a line is not of the form NAME: VALUE",
                    now: "Correct the file, for example: Authorization: Bearer TOKEN")
            }
        }
        return proof
    }

    private static func read(_ path: String, isSecret: Bool) throws -> String {
        func unusable(_ why: String, _ now: Advice) -> MoultError {
            MoultError(.credentials, what: "cannot use \(path)", why: why, now: now)
        }
        guard let facts = try Files.factsThroughLinks(path), let bytes = try Files.read(path, limit: 1 << 18) else {
            throw unusable("no such file", "Correct \"feed\" in moult.json.")
        }
        if isSecret, facts.mode & 0o077 != 0 {
            throw unusable("other users can read or change it", "Protect it: \(run: ["chmod", "600", path])")
        }
        if isSecret, ![0, geteuid()].contains(facts.owner) {
            throw unusable("it belongs to another user", "Make it a file of the user who runs moult.")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw unusable("it is not text", "Use a file in PEM form.")
        }
        return text
    }

    private static func isHeader(_ line: String) -> Bool {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return false }
        return line[..<colon].utf8.allSatisfy { (0x30...0x7a).contains($0) || $0 == UInt8(ascii: "-") }
            && line.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }

    /// The content of `ClientFiles`, and the locations whose hosts receive it.
    package struct Proof: Sendable {
        let places: [String]
        fileprivate(set) var certificate: String?
        fileprivate(set) var key: String?
        fileprivate(set) var headers: [String] = []

        var json: JSON { .record(["places": places, "certificate": certificate, "key": key, "headers": headers]) }
    }
}
