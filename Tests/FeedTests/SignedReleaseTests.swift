import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A store with keys accepts only releases that these keys have signed.
@Suite struct SignedReleaseTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.release("1.0.0", sequence: 1)
        try bench.key("a")
    }

    private func refused(_ line: String, _ message: String) throws {
        let before = try Tree(bench.path("store"), times: false)
        #expect(try bench.refusal(line, status: 3) == "moult: error: \(message)\n")
        #expect(try Tree(bench.path("store"), times: false) == before)
    }

    @Test func `plan shows the signers`() throws {
        try bench.must("moult sign rel/test-1.0.0.json -k a.key && moult init --product org.example.test --key a.pub")
        let plan = try bench.run("moult plan rel/test-1.0.0.json")
        #expect(plan.status == 2)
        #expect(plan.output.split(separator: "\n")[0].hasSuffix(", signed by \(try bench.id("a")))"))
        try bench.must("moult apply rel/test-1.0.0.json")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `without keys, a plan says that the signature is not checked`() throws {
        try bench.must("moult init --product org.example.test")
        #expect(try bench.run("moult plan rel/test-1.0.0.json").output.contains(", not signed)"))
        try bench.must("moult sign rel/test-1.0.0.json -k a.key")
        let said = "signature not checked: this store has no key"
        #expect(try bench.run("moult plan rel/test-1.0.0.json").output.contains(", \(said))"))
        // For a feed, `check` says so as well, and also how to add a key.
        try bench.must("moult publish -q public rel/test-1.0.0.json -k a.key")
        let check = try bench.run("moult check --feed public")
        #expect(check.output.contains(", \(said), ") && check.output.contains("\"keys\" of moult.json"), "\(check)")
        #expect(try bench.run("moult check --feed public --json").output.contains("\"trust\":\"\(said)\""))
        try bench.must("rm public/*.minisig")
        #expect(try bench.run("moult check --feed public").output.contains(", not signed, "))
    }

    @Test func `an unsigned release is refused`() throws {
        try bench.must("moult init --product org.example.test --key a.pub")
        let path = bench.path("rel/test-1.0.0.json")
        let message = """
            \(path) is not signed: this store accepts only files signed by a trusted key, and \(path).minisig does not exist; \
            the trusted key is \(try bench.id("a"))
              Get the signature from the publisher, and put it next to the file. The publisher creates it with: moult sign \
            \(path) --key FILE
            """
        try refused("moult plan rel/test-1.0.0.json", message)
        try refused("moult apply rel/test-1.0.0.json", message)
    }

    @Test func `a signature by an unknown key is refused`() throws {
        try bench.key("b")
        try bench.must("moult sign rel/test-1.0.0.json -k b.key && moult init --product org.example.test --key a.pub")
        try refused(
            "moult apply rel/test-1.0.0.json",
            """
            \(bench.path("rel/test-1.0.0.json")) is not signed by a trusted key: its signature is by key \
            \(try bench.id("b")); the trusted key is \(try bench.id("a"))
              If that key is the publisher's, add it to the trusted keys.
            """)
    }

    /// The signature is checked before the file is parsed, so the error for garbage with an invalid signature is about
    /// the signature.
    @Test func `a manifest that does not match its signature is not parsed`() throws {
        try bench.must("moult sign rel/test-1.0.0.json -k a.key && moult init --product org.example.test --key a.pub")
        try bench.must("echo '}{' > rel/test-1.0.0.json")
        try refused(
            "moult apply rel/test-1.0.0.json",
            """
            the signature of \(bench.path("rel/test-1.0.0.json")) is not valid: the file does not match the signature of \
            key \(try bench.id("a"))
              Get the file and its signature again; if the error remains, report it to the publisher and do not use the file.
            """)
    }

    @Test func `an expired key is not trusted`() throws {
        try bench.must("moult sign rel/test-1.0.0.json -k a.key && moult init --product org.example.test --key a.pub")
        let settings = bench.path("store/moult.json")
        let json = try JSON(parsing: try Files.read(settings, limit: 1 << 20) ?? [], source: settings)
        let entry = try #require(json["keys"]?["trusted"]?.array?.first)
        let keys: JSON = ["trusted": [entry.setting("notAfter", to: "2026-01-01T00:00:00Z")]]
        try Files.replace(settings, with: Array(json.setting("keys", to: keys).pretty.utf8))
        try refused(
            "moult apply rel/test-1.0.0.json",
            """
            \(bench.path("rel/test-1.0.0.json")) is signed by a key that is no longer trusted: key \
            \(try bench.id("a")) was trusted until 2026-01-01T00:00:00Z
              Ask the publisher for a file that is signed by the current key.
            """)
    }

    @Test func `with a threshold of two, one of three signatures is not enough`() throws {
        try bench.key("b")
        try bench.key("c")
        try bench.must("moult init --product org.example.test --key a.pub --key b.pub --key c.pub")
        try bench.must(#"sed -i 's/"threshold": 1/"threshold": 2/' store/moult.json; moult sign rel/*.json -k b.key"#)
        let ids = try ["a", "b", "c"].map { try bench.id($0) }
        try refused(
            "moult apply rel/test-1.0.0.json",
            """
            \(bench.path("rel/test-1.0.0.json")) has too few signatures: this store requires 2 signatures, and the file has only those of \(ids[1]); \
            the trusted keys are \(ids.joined(separator: ", "))
              Get the signature from the publisher, and put it next to the file. The publisher creates it with: moult sign \
            \(bench.path("rel/test-1.0.0.json")) --key FILE
            """)
        // Two copies of the same signature count once.
        try bench.must("cp rel/test-1.0.0.json.minisig rel/test-1.0.0.json.\(ids[0]).minisig")
        #expect(try bench.run("moult apply rel/test-1.0.0.json").status == 3)
        try bench.must("rm rel/test-1.0.0.json.\(ids[0]).minisig; moult sign rel/test-1.0.0.json -k c.key")
        #expect(try Files.facts(bench.path("rel/test-1.0.0.json.\(ids[2]).minisig")) != nil)
        let plan = try bench.run("moult plan rel/test-1.0.0.json").output
        #expect(plan.contains("signed by \(ids[1]) and \(ids[2]))"))
        try bench.must("moult apply rel/test-1.0.0.json")
    }

    @Test func `the signature is checked again when a saved plan is applied`() throws {
        try bench.must("moult sign rel/test-1.0.0.json -k a.key && moult init --product org.example.test --key a.pub")
        #expect(try bench.run("moult plan -o p rel/test-1.0.0.json").status == 2)
        try bench.must("rm rel/test-1.0.0.json.minisig")
        #expect(try bench.run("moult apply --plan p").status == 3)
    }

    @Test(.tags(.thorough)) func `minisign and moult verify each other's signatures`() throws {
        try bench.must("minisign -G -W -p m.pub -s m.key && moult init --product org.example.test --key m.pub")
        try bench.must("minisign -S -s m.key -m rel/test-1.0.0.json && moult apply rel/test-1.0.0.json")
        try bench.must("moult sign rel/test-1.0.0.json -k m.key && minisign -V -p m.pub -m rel/test-1.0.0.json")
        try bench.must("rm rel/*.minisig && moult sign rel/test-1.0.0.json -k a.key -t 'release 1'")
        #expect(try bench.must("minisign -V -Q -p a.pub -m rel/test-1.0.0.json") == "release 1\n")
    }

    @Test(arguments: ["sign rel/test-1.0.0.json -k", "publish public rel/test-1.0.0.json -k"])
    func `a warning names a secret key that other users may read`(line: String) throws {
        try bench.must("chmod 644 a.key")
        let ended = try bench.run("moult \(line) a.key -q")
        #expect(ended.status == 0)
        #expect(
            ended.errors == "moult: warning: other users may read the secret key a.key. Protect it: chmod 600 a.key\n")
        try bench.must("chmod 640 a.key; rm -rf public")
        #expect(try bench.run("moult \(line) a.key -q").errors == "")
    }

    @Test func `keygen never overwrites a key`() throws {
        let before = try bench.must("cat a.key a.pub")
        #expect(
            try bench.refusal("moult keygen a --no-password", status: 3)
                == "moult: error: a.key already exists: overwriting it would destroy a key\n"
                + "  Choose another name, or move that file away.\n")
        #expect(try bench.must("cat a.key a.pub") == before)
        #expect(try bench.must("stat -c %a a.key a.pub") == "600\n644\n")
    }
}
