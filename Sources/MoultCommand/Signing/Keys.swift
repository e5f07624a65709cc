internal import MoultBasics
internal import MoultFiles
internal import MoultTrust

/// Keys named on the command line.
enum Keys {
    /// The maximum size of a key file, which normally has a few hundred bytes.
    private static let limit = 1 << 14

    /// Reads a secret key from a file in moult's or minisign's format; asks for the password if the key has one.
    fileprivate static func secret(_ path: String, _ bar: ProgressBar) throws -> SecretKey {
        guard let bytes = try Files.read(path, limit: limit) else {
            let stem = path.hasSuffix(".key") ? String(path.dropLast(4)) : path
            throw MoultError(
                .minisignForm, what: "no secret key at \(path)", why: "no such file",
                now: "Create a key pair with: \(shellLine(["moult", "keygen", stem]))")
        }
        if (try? PublicKey(file: bytes, named: path)) != nil {
            throw MoultError(
                .minisignForm, what: "\(path) is a public key", why: "only the secret key can sign",
                now: "Use the secret key file, whose name ends in .key.")
        }
        defer { bar.end() }
        return try SecretKey(file: bytes, named: path) {
            let password = try Password.ask("Password for \(path): ")
            bar.show(Progress("open the key", done: 0))
            return password
        }
    }

    /// Returns the command that denies other users access to a secret key; nil if they cannot read or change it. A group may
    /// have read access on purpose.
    fileprivate static func protection(of path: String) throws -> String? {
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file, facts.mode & 0o027 != 0 else {
            return nil
        }
        return shellLine(["chmod", "600", path])
    }

    /// Returns a public key, given as a file path or as the key line itself.
    static func `public`(_ text: String) throws -> PublicKey {
        if let bytes = try Files.read(text, limit: limit) { return try PublicKey(file: bytes, named: text) }
        guard text.hasPrefix("RW"), text.utf8.count == 56 else {
            throw MoultError(
                .minisignForm, what: "no public key at \(text)", why: "no such file",
                now: "Specify the publisher's public key: the path of its .pub file, or the key line in that file.")
        }
        return try PublicKey(base64: text, named: text)
    }
}

extension Call {
    /// Reads a secret key whose path is on the command line, and prints a warning if other users may read or change the file.
    func secretKey(_ path: String) throws -> SecretKey {
        let key = try Keys.secret(path, progressBar())
        if let command = try Keys.protection(of: path) {
            output.warn("other users may read the secret key \(path). Protect it: \(command)")
        }
        return key
    }
}
