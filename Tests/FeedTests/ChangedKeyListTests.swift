import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// If a key list in a feed directory was changed, the publisher restores it: signing it would also sign the change.
@Suite struct ChangedKeyListTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.key("other")
        try bench.publishWithKeyList()
    }

    private static let advice = """
          Restore it and its signatures from a copy that you trust, such as the directory of `moult trust`: cp COPY/keys-1.json* public/

        """

    /// The changes to the list and its signature, each with the expected error.
    private static let changes = [
        (
            #"sed -i 's/"serial": 1/"serial":  1/' public/keys-1.json"#,
            "public/keys-1.json was changed after it was signed: the signature keys-1.json.minisig does not match"
        ),
        (
            "cp other.pub public/keys-1.json.minisig",
            "public/keys-1.json was changed after it was signed: the signature keys-1.json.minisig does not match"
        ),
        (
            "rm public/keys-1.json.minisig",
            "public/keys-1.json is not signed with its own root keys: the list needs a signature by key ROOT"
        ),
        (
            "moult trust forged -q --product org.example.test --root other.pub --release other.pub -k other.key; cp forged/keys-1.json public",
            "public/keys-1.json is not signed with its own root keys: the list needs a signature by key OTHER"
        ),
        (
            #"sed -i 's/"serial": 1/"serial": 5/' public/keys-1.json"#,
            "public/keys-1.json is not key list 1: its serial is 5"
        ),
        (
            "truncate -s 40 public/keys-1.json",
            "public/keys-1.json is not valid JSON: line 3, column 23: the text ends inside a string"
        ),
    ]

    @Test(arguments: changes)
    func `the advice for a changed key list restores the list`(_ change: String, _ message: String) throws {
        try bench.must(change)
        let text = try message.replacing("ROOT", with: bench.id("root")).replacing("OTHER", with: bench.id("other"))
        for line in [
            "moult publish public -k release.key -k online.key",
            "moult publish public --trust keys/keys-1.json -k release.key -k online.key",
        ] {
            let ended = try bench.run(line)
            #expect(ended.errors == "moult: error: \(text)\n\(Self.advice)", "\(line): \(ended)")
        }
        let check = try bench.run("moult publish public --check --trust keys/keys-1.json")
        #expect(check.status == 1 && (check.output + check.errors).contains("public/keys-1.json"), "\(check)")
        try bench.must("cp keys/keys-1.json* public/")
        try bench.must("moult publish public -q -k release.key -k online.key")
        try bench.must("moult publish public --check --trust keys/keys-1.json")
    }

    @Test func `a changed key list on the machine with the root key is not signed again`() throws {
        try bench.must("cp -r keys copy; sed -i 's/\"serial\": 1/\"serial\":  1/' keys/keys-1.json")
        #expect(
            try bench.refusal("moult trust keys -k root.key", status: 3)
                == "moult: error: keys/keys-1.json was changed after it was signed: the signature keys-1.json.minisig does not match\n"
                + Self.advice.replacing("public/", with: "keys/"))
        try bench.must("cp copy/keys-1.json* keys/; moult trust keys -q -k root.key")
    }

    /// The operator must not trust the key of a feed because the list that contains it was changed.
    @Test func `a store does not advise to trust the key of a feed whose key list was changed`() throws {
        try bench.must("moult init -q --product org.example.test --key root.pub --feed public/feed.json")
        try bench.must("sed -i 's/\"serial\": 1/\"serial\":  1/' public/keys-1.json")
        let (root, online) = (try bench.id("root"), try bench.id("online"))
        #expect(
            try bench.refusal("moult apply", status: 3) == """
                moult: error: \(bench.path("public/feed.json")) is not signed by a trusted key: its signature is by key \(online); the trusted key is \(root)
                  keys-1.json, the next key list, may contain that key, but is not signed by a trusted key either. Ask the publisher \
                to restore keys-1.json and its signatures.

                """)
        try bench.must("cp keys/keys-1.json* public/; moult apply -q")
    }

    @Test func `the first signature of a feed comes with a list of the releases that it also covers`() throws {
        try bench.must("moult publish --allow-unsigned plain rel/test-1.0.0.json -q")
        try bench.release("2.0.0", sequence: 2)
        let ended = try bench.run("moult publish plain rel/test-2.0.0.json -q -k online.key")
        #expect(ended.status == 0, "\(ended)")
        #expect(
            ended.errors == """
                moult: warning: plain/feed.json was not signed before, and the signature also covers what it already contained: \
                1.0.0. If one of these releases is not yours, withdraw it: moult publish plain --withdraw VERSION --reason TEXT \
                --key FILE

                """)
        #expect(try bench.run("moult publish plain -q -k online.key").errors == "")
        // A feed that starts with a signature has no such releases.
        #expect(try bench.run("moult publish new rel/test-1.0.0.json -q -k online.key").errors == "")
    }
}
