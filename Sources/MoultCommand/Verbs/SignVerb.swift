internal import MoultBasics
internal import MoultFiles
internal import MoultTrust

/// `moult sign`: signs files without changing them.
enum SignVerb {
    static let files = Argument(.file(), presence: .several, "The files to sign: manifests, key lists or other files")
    static let key = Option(
        "key", letter: "k", value: .file(), required: "signing requires a secret key",
        "The secret key, created by `moult keygen` or minisign")
    static let comment = Option("comment", letter: "t", value: .text("TEXT"), "A comment to include in the signature")

    static let command = Command(
        "sign", .publishers, "sign manifests, in minisign's format",
        discussion: [
            """
            The command writes FILE.minisig next to each FILE and replaces an older signature made with the same key. If \
            another key has already signed FILE, the signature goes to FILE.KEYID.minisig, for stores that require \
            several signatures. The bundle needs no signature, because the manifest contains its digest.
            """
        ], arguments: [files], options: [key, SigningCommand.option, comment], usesStore: false,
        examples: [
            "Sign a release:": "moult sign releases/dailyvalue-2.1.0.json --key release.key",
            "The same with minisign:": "minisign -S -s release.key -m releases/dailyvalue-2.1.0.json",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let paths = call.values(files)
        for path in paths {
            let kind = try Files.factsThroughLinks(path)?.kind
            guard kind == .file else {
                throw MoultError(
                    .system, what: "cannot sign \(path)",
                    why: kind == nil ? "no such file" : "it is not a regular file",
                    now: "Specify a file, usually the manifest of a release.")
            }
        }
        let secret = try call.secretKey(call.required(key))
        let made = try paths.map { try SignatureFile(of: $0).sign(with: secret, comment: call.value(comment)) }
        let id = secret.publicKey.id.description
        call.output.print(json: .record(["key": id, "signatures": made])) { page in
            for path in made { page.line("\("+", .added) \(path)  signed by \(id)") }
        }
        return .done
    }
}

struct SignatureFile {
    let path: String

    init(of path: String) { self.path = path }

    func sign(with secret: SecretKey, comment: String?) throws -> String {
        let output = try OutputFile.directory(of: "\(path).minisig")
        defer { withExtendedLifetime(output) {} }
        let text = comment ?? "timestamp:\(Timestamp.now.seconds)\tfile:\(Files.name(of: path))\thashed"
        let signature = try secret.sign(fileAt: path, trustedComment: text)
        let place = try place(for: secret.publicKey)
        try Files.replace(
            place, with: signature.file(untrustedComment: "signature from moult secret key \(secret.publicKey.id)"))
        return place
    }

    private func place(for key: PublicKey) throws -> String {
        let usual = "\(path).minisig"
        guard let bytes = try Files.read(usual, limit: 1 << 14) else { return usual }
        let signer = try Signature(file: bytes, named: usual).keyID
        return signer == key.id ? usual : TrustedKeys.signatureName(of: path, by: key.id)
    }
}
