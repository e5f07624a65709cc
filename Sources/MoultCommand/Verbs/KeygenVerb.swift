internal import MoultBasics
internal import MoultFiles
internal import MoultTrust

/// `moult keygen`: generates a key pair.
enum KeygenVerb {
    static let name = Argument(
        .file("NAME"), presence: .optional, "Write NAME.key and NAME.pub (default: moult.key and moult.pub)")
    static let noPassword = Option(
        "no-password", "Store the secret key without a password, for machines that sign unattended")

    static let root = Option("root", "Create a root key, which signs only key lists and stays offline")

    static let command = Command(
        "keygen", .publishers, "create a key pair: one key signs releases; stores trust the other",
        discussion: [
            """
            The files are in minisign's format, so moult and minisign can both use them. A password protects the secret key; \
            moult asks for it, or reads it as a line from stdin. Each use of a key with a password takes 128 MiB of \
            memory and a few tenths of a second; if minisign created the key, 1 GiB and several seconds.
            """,
            """
            Anyone with the secret key can publish in your name: keep it off the server that serves the releases.
            """,
        ], arguments: [name], options: [noPassword, root], usesStore: false,
        examples: [
            "Create release.key and release.pub:": "moult keygen release",
            "Create a root key:": "moult keygen --root root",
            "Create a store that trusts this key:": "moult init --product org.example.app --key release.pub",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let stem = call.value(name) ?? "moult"
        let (secret, open) = ("\(stem).key", "\(stem).pub")
        let output = try OutputFile.directory(of: secret)
        defer { withExtendedLifetime(output) {} }
        let (directory, working) = (Files.directory(of: secret), ".\(Files.name(of: secret)).making")
        try WorkDirectory.removeLeftovers(of: working, in: directory)
        for path in [secret, open] where try Files.facts(path) != nil {
            throw MoultError(
                .minisignForm, .refused, what: "\(path) already exists", why: "overwriting it would destroy a key",
                now: "Choose another name, or move that file away.")
        }
        let password = call.has(noPassword) ? nil : try Password.choose()
        let key = try SecretKey.generate()
        let bar = call.progressBar()
        defer { bar.end() }
        if password != nil { bar.show(Progress("protect the key", done: 0)) }
        let file = try key.file(password: password)
        // A signal during the prompt or the long computation leaves no files; from here on signals have no effect.
        Interruption.watch()
        let work = try WorkDirectory(in: directory, named: working)
        defer { work.remove() }
        // Both files are written or neither: a single key file would block the next attempt, and look worth keeping.
        var set = FileSet(.added, head: Files.name(of: secret))
        set.first = [Files.name(of: open)]
        try work.add(set.head, file, mode: 0o600)
        try work.add(Files.name(of: open), key.publicKey.file)
        try work.deliver(set)
        bar.end()
        let (id, text) = (key.publicKey.id.description, key.publicKey.base64)
        let json = JSON.record(["secret": secret, "public": open, "id": id, "key": text])
        call.output.print(json: json) { page in
            if call.has(root) {
                page.line("\("+", .added) \(secret)  secret: signs key lists; keep it offline")
                page.line("\("+", .added) \(open)  public: root key \(id)")
                let words = ["moult", "trust", "keys", "--product", "NAME", "--root", open, "--release", "RELEASE.pub"]
                return page.line("create the first key list with: \(run: words + ["--key", secret], .heading)")
            }
            page.line("\("+", .added) \(secret)  secret: signs releases")
            page.line("\("+", .added) \(open)  public: key \(id)")
            page.line("to create a store that trusts this key: \("moult init --product NAME --key \(text)", .heading)")
        }
        return .done
    }
}
