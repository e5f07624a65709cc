internal import MoultBasics
internal import MoultPublish
internal import MoultTrust

/// `moult trust`: creates a publisher's next key list.
enum TrustVerb {
    static let directory = Argument(
        .directory(), "The directory of the key lists, on the machine with the root key; created if missing")
    static let product = Option("product", value: .text("NAME"), "The product, for the first list")
    static let root = Option("root", value: .text("KEY"), repeats: true, "A key that signs only key lists")
    static let release = Option("release", value: .text("KEY"), repeats: true, "A key that signs releases")
    static let timestamp = Option("timestamp", value: .text("KEY"), repeats: true, "A key that signs only the feed")
    static let threshold = Option(
        "threshold", value: .text("ROLE=N"), repeats: true,
        "How many keys of a role must sign, such as release=2 (default: unchanged, or 1)")
    static let days = Option("days", value: .number(in: 1...3650), "Days until the list expires (default 365)")
    static let key = Option(
        "key", letter: "k", value: .file(), repeats: true, required: "stores accept only a signed list",
        "The secret root key that signs the list")

    static let command = Command(
        "trust", .publishers, "add, replace, revoke and renew the keys that stores trust",
        discussion: [
            """
            The command writes the next key list, keys-N.json, and signs it with root keys. A role keeps its keys \
            unless you specify keys for it; these replace all earlier ones, so a key that you leave out is revoked. \
            Without a timestamp key, the release keys sign the feed.
            """,
            """
            Stores trust the public root key and get each list from the feed: moult publish --trust FILE. After a \
            list expires, stores install nothing until they receive a newer one.
            """, "If a root key on another machine must also sign, sign the list there: moult sign FILE --key FILE",
        ], arguments: [directory],
        options: [product, root, release, timestamp, threshold, days, key, SigningCommand.option], usesStore: false,
        examples: [
            "Create the first list:": "moult trust keys --product APP --root root.pub --release rel.pub -k root.key",
            "Sign the feed with a separate key:": "moult trust keys --timestamp online.pub -k root.key",
            "Replace the release key:": "moult trust keys --release new.pub -k root.key",
            "Renew the list for a year:": "moult trust keys -k root.key",
            "Publish the list:": "moult publish public --trust keys/keys-2.json -k new.key -k online.key",
        ],
        exits: [
            .failure(.refused): "stores could not use the list; the message says why",
            .failure(.busy): "another command is creating a list in DIR or publishing there",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        var maker = KeyListMaker()
        maker.product = call.value(product)
        maker.days = call.number(days) ?? maker.days
        for (option, role) in roles { maker[keyPath: role].keys = try call.values(option).map { try Keys.public($0) } }
        for text in call.values(threshold) {
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, let number = Int(parts[1]), (1...16).contains(number),
                let role = roles.first(where: { $0.0.name == parts[0] })?.1
            else {
                throw call.wrongUsage(
                    "--threshold must be ROLE=N, not \"\(text)\"",
                    why: "a role is root, release or timestamp; N is 1 to 16")
            }
            maker[keyPath: role].threshold = number
        }
        maker.keys = try call.secretKeys(key)
        call.output.print(try maker.make(in: call.required(directory)))
        return .done
    }

    private static var roles: [(Option, WritableKeyPath<KeyListMaker, KeyListMaker.Role>)] {
        [(root, \.root), (release, \.release), (timestamp, \.timestamp)]
    }
}

extension KeyListMaker.Report: Report {
    private var roles: [(name: String, keys: TrustedKeys)] {
        [("root", list.roles.root), ("release", list.roles.release)]
            + (list.roles.timestamp.map { [("timestamp", $0)] } ?? [])
    }

    func write(to page: inout Page) {
        let until = list.roles.expires.map { ", valid until \($0.text(for: page.terminal))" } ?? ""
        page.wrapped("\("+", .added) \(path)  key list \(list.serial) of \(list.product)\(until)")
        var table = Table(.left, .left, indent: 2)
        for role in roles { table.row("\(role.name)", "\(role.keys.words)") }
        page.table(table)
        page.wrapped("signed by \(signers.map(\.description).joined(separator: " and "))")
        if let missing = missing {
            page.wrapped(StyledText("signatures are missing: \(missing)", .warning))
            page.line("sign it with: \(run: ["moult", "sign", path, "--key", "ROOT.key"], .heading)")
        } else {
            page.line(
                "publish it with: \(run: ["moult", "publish", "DIRECTORY", "--trust", path, "--key", "FILE"], .heading)"
            )
        }
    }

    var json: JSON {
        .record([
            "file": path, "product": list.product, "list": list.serial, "expires": list.roles.expires?.description,
            "roles": JSON.object(roles.map { JSON.Member($0.name, $0.keys.json) }),
            "signers": signers.map(\.description), "missing": missing,
        ])
    }
}
