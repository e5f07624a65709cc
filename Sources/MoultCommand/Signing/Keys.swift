internal import MoultBasics
internal import MoultFiles
internal import MoultTrust

enum Keys {
    private static let limit = 1 << 14

    /// Reads a secret key from a file in moult's or minisign's format; asks for the password if the key has one.
    fileprivate static func secret(_ path: String, _ command: String?, _ bar: ProgressBar) throws -> SecretKey {
        guard let bytes = try Files.read(path, limit: limit) else {
            throw MoultError(
                .minisignForm, what: "no secret key at \(path)", why: "no such file",
                now: "Specify the file of the secret key.\(similarKey(path)) To create a new key pair: "
                    + "\(moult: "keygen", stem(of: path))")
        }
        // Any other file is read as a secret key below, which reports its fault.
        if let key = try? PublicKey(file: bytes, named: path) {
            guard let command else {
                throw MoultError(
                    .minisignForm, what: "\(path) is a public key", why: "only the secret key can sign",
                    now: "Use the secret key file, whose name ends in .key. For a key elsewhere: --sign-with COMMAND")
            }
            return SecretKey(elsewhere: key) {
                try SigningCommand(command: command).sign($0, keyID: key.id.description)
            }
        }
        defer { bar.end() }
        return try SecretKey(file: bytes, named: path) {
            let password = try Password.ask("Password for \(path): ")
            bar.show(Progress("open the key", done: 0))
            return password
        }
    }

    private static func stem(of path: String) -> String { path.hasSuffix(".key") ? String(path.dropLast(4)) : path }

    /// Returns a question that suggests a secret key with a similar name in the same directory, or nothing.
    private static func similarKey(_ path: String) -> String {
        // If the directory cannot be read, the error without a suggestion remains.
        let names = (try? Files.list(Files.directory(of: path))) ?? []
        guard let name = nearest(to: Files.name(of: path), among: names.filter { $0.hasSuffix(".key") }) else {
            return ""
        }
        return " Did you mean \"\(path.dropLast(Files.name(of: path).count))\(name)\"?"
    }

    /// Returns the secret key next to a public key on the command line; nil if it does not exist.
    static func secretFile(nextTo text: String) -> String? {
        guard text.hasSuffix(".pub") else { return nil }
        let path = "\(text.dropLast(4)).key"
        // Only advice depends on this file.
        return (try? Files.factsThroughLinks(path)) == nil ? nil : path
    }

    /// Returns the command that denies other users access to a secret key; nil if they cannot read or change it. A group may
    /// have read access on purpose. The command also removes the rights that an access control list gives to other users.
    fileprivate static func protection(of path: String) throws -> Advice.Command? {
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file,
            try facts.mode & 0o027 != 0 || Files.hasAccessList(path)
        else { return nil }
        return Advice.Command(["chmod", "600", path])
    }

    /// Returns a public key, given as a file path or as the key line itself.
    static func `public`(_ text: String) throws -> PublicKey {
        if let bytes = try Files.read(text, limit: limit) {
            guard SecretKey.isKey(file: bytes) else { return try PublicKey(file: bytes, named: text) }
            let file = "\(stem(of: text)).pub"
            let isThere = try Files.factsThroughLinks(file) != nil
            throw MoultError(
                .minisignForm, .refused, what: "\(text) is a secret key", why: "a store needs the public key",
                now: "Specify \(isThere ? file : "its .pub file"), and keep the secret key with the publisher.")
        }
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
        let key = try Keys.secret(path, value(SigningCommand.option), progressBar())
        if !key.isElsewhere, let command = try Keys.protection(of: path) {
            output.warn("other users may read the secret key \(path). Protect it: \(command)")
        }
        return key
    }

    func secretKeys(_ option: Option) throws -> [SecretKey] {
        var keys: [SecretKey] = []
        for path in values(option) {
            let key = try secretKey(path)
            if !keys.contains(where: { $0.publicKey == key.publicKey }) { keys.append(key) }
        }
        return keys
    }
}
