internal import MoultBasics
internal import MoultFiles
internal import MoultTrust

/// Keys as the command line names them.
enum Keys {
    /// A key file is a few hundred bytes.
    private static let limit = 1 << 14

    /// A secret key file of ours or minisign's; asks for its password if it has one.
    static func secret(_ path: String, for call: Call) throws -> SecretKey {
        guard let bytes = try Files.read(path, limit: limit) else { throw missing("secret key", path) }
        if let facts = try Files.factsThroughLinks(path), facts.kind == .file, facts.mode & 0o077 != 0 {
            let command = shellLine(["chmod", "600", path])
            call.output.warn("other users can use the secret key \(path). Change that: \(command)")
        }
        return try SecretKey(file: bytes, named: path) { try Password.ask("Password of \(path): ") }
    }

    /// A public key: the file's path, or the line in it.
    static func `public`(_ text: String) throws -> PublicKey {
        if let bytes = try Files.read(text, limit: limit) { return try PublicKey(file: bytes, named: text) }
        guard text.hasPrefix("RW"), text.utf8.count == 56 else { throw missing("public key", text) }
        return try PublicKey(base64: text, named: text)
    }

    private static func missing(_ kind: String, _ path: String) -> MoultError {
        MoultError(
            .minisignForm, what: "there is no \(kind) at \(path)", why: "no such file",
            now: "Make a pair of keys with: moult keygen")
    }
}
