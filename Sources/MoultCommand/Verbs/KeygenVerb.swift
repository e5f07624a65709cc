internal import MoultBasics
internal import MoultFiles
internal import MoultTrust

/// `moult keygen`: makes a pair of keys.
enum KeygenVerb {
    static let name = Argument(
        .file("NAME"), presence: .optional, "Makes NAME.key and NAME.pub; else moult.key, moult.pub")
    static let noPassword = Option(
        "no-password", "Leave the secret key unprotected, for machines that sign on their own")

    static let root = Option("root", "Make a root key, which signs key lists only and stays offline")

    static let command = Command(
        "keygen", .publishers, "make a pair of keys: one to sign releases with, one to give away",
        discussion: [
            """
            The files are minisign's: either program signs and verifies with keys of the other. The secret key is \
            protected by a password, which is asked for, or read as a line of what is piped in. Protecting it takes \
            1 GiB of memory and some seconds, each time it is used.
            """,
            "Who has the secret key can publish in your name: keep it off the server that serves the releases.",
        ],
        arguments: [name], options: [noPassword, root], usesStore: false,
        examples: [
            .init("Make release.key and release.pub:", "moult keygen release"),
            .init("Make a root key:", "moult keygen --root root"),
            .init(
                "Let a store take only what this key signed:", "moult init --product org.example.app --key release.pub"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let stem = call.value(name) ?? "moult"
        let (secret, open) = ("\(stem).key", "\(stem).pub")
        for path in [secret, open] where try Files.facts(path) != nil {
            throw MoultError(
                .minisignForm, .refused, what: "\(path) is there already", why: "a key that is lost is lost for ever",
                now: "Name another one, or move that file away.")
        }
        try OutputFile.requireDirectory(of: secret)
        let password = call.has(noPassword) ? nil : try Password.choose()
        let key = try SecretKey.generate()
        try write([(secret, key.file(password: password), 0o600), (open, key.publicKey.file, 0o644)])
        call.output.print(KeyReport(secret: secret, open: open, key: key.publicKey, isRoot: call.has(root)))
        return .done
    }

    /// Both files or none: half a key would be in the way of the next one, and look like something to keep.
    private static func write(_ files: [(path: String, bytes: [UInt8], mode: UInt32)]) throws {
        var made: [String] = []
        do {
            // Each is made where nothing is, so what is replaced then, or removed, is nobody else's.
            for file in files {
                try Files.writeNew([], to: file.path, mode: file.mode)
                made.append(file.path)
            }
            for file in files { try Files.replace(file.path, with: file.bytes, mode: file.mode) }
        } catch {
            // The first error is the one to tell.
            for path in made { try? Files.remove(path) }
            throw error
        }
    }
}

private struct KeyReport: Report {
    let secret: String
    let open: String
    let key: PublicKey
    let isRoot: Bool

    func write(to page: inout Page) {
        if isRoot {
            page.line("\("+", .added) \(secret)  secret: sign key lists with it, and keep it offline")
            page.line("\("+", .added) \(open)  to give away: root key \(key.id.description)")
            let words = ["moult", "trust", "keys", "--product", "NAME", "--root", open, "--release", "RELEASE.pub"]
            return page.line("name the release key with: \(shellLine(words + ["--key", secret]), .heading)")
        }
        page.line("\("+", .added) \(secret)  secret: sign releases with it")
        page.line("\("+", .added) \(open)  to give away: key \(key.id.description)")
        page.line("trust it in a store with: \("moult init --key \(key.base64)", .heading)")
    }

    var json: JSON {
        [
            "secret": .string(secret), "public": .string(open), "id": .string(key.id.description),
            "key": .string(key.base64),
        ]
    }
}
