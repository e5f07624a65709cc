import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Another user who can write to the directory of a feed, but has no key of the publisher.
@Suite struct PlantedFileTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// Adds a release of the attacker to the feed, and signs it with the attacker's key.
    private func forge() throws {
        try bench.release("9.0.0", sequence: 9)
        try bench.must("cp rel/test-9.0.0.* public")
        let path = bench.path("public/feed.json")
        let feed = try JSON(parsing: try Files.read(path, limit: 1 << 20) ?? [], source: path)
        let manifest = try Files.read(bench.path("public/test-9.0.0.json"), limit: 1 << 20) ?? []
        let sum = try bench.must("sha256sum public/test-9.0.0.json").prefix(64)
        let entry: JSON = [
            "version": "9.0.0", "sequence": 9,
            "manifest": ["file": "test-9.0.0.json", "size": .size(manifest.count), "sha256": .string(String(sum))],
        ]
        let forged = feed.setting("releases", to: .array((feed["releases"]?.array ?? []) + [entry]))
        try Files.replace(path, with: Array(forged.pretty.utf8))
        try bench.must("moult sign -q public/feed.json -k evil.key")
    }

    /// The planted list names its own root key, and lets both the publisher and the attacker sign.
    @Test(arguments: ["", "rm public/feed.json*.minisig;"])
    func `a planted key list does not make publish sign a changed feed`(before: String) throws {
        for name in ["a", "evil", "root"] { try bench.key(name) }
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult publish public rel/test-1.0.0.json -q -k a.key")
        try bench.must("moult init -q store --product org.example.test --key a.pub --feed public; moult apply -q")
        try bench.must(
            "moult trust l -q --product org.example.test --root root.pub --release a.pub --release evil.pub -k root.key"
        )
        try bench.must("cp l/keys-1.json* public; \(before) true")
        try forge()
        let feed = try Files.read(bench.path("public/feed.json"), limit: 1 << 20)
        try bench.release("2.0.0", sequence: 2)
        let refused = try bench.refusal("moult publish public rel/test-2.0.0.json -k a.key", status: 3)
        #expect(refused.contains("public/feed.json was "), "\(refused)")
        #expect(try Files.read(bench.path("public/feed.json"), limit: 1 << 20) == feed)
        try bench.must("rm public/keys-1.json*")
        #expect(try bench.run("moult apply").status != 0)
        #expect(try bench.installed() == "1.0.0")
    }

    /// A second machine signs with its own timestamp key. The list in the directory of `moult trust` proves that both are known.
    @Test func `a feed signed on another machine is renewed with the publisher's own copy of the key list`() throws {
        for name in ["root", "release", "one", "two"] { try bench.key(name) }
        try bench.must(
            "moult trust keys -q --product org.example.test --root root.pub --release release.pub --timestamp one.pub --timestamp two.pub -k root.key"
        )
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult publish public rel/test-1.0.0.json -q --trust keys/keys-1.json -k release.key -k one.key")
        let refused = try bench.refusal("moult publish public -k two.key", status: 3)
        #expect(
            refused.contains("was not signed with any of these keys") && refused.contains("--trust keys/keys-1.json"))
        #expect(try bench.run("moult publish public -k two.key --trust public/keys-1.json").status == 3)
        try bench.must("moult publish public -q -k two.key --trust keys/keys-1.json")
    }

    @Test func `a planted key list is not renewed with the publisher's root key`() throws {
        for name in ["root", "release", "evil"] { try bench.key(name) }
        let trust = "moult trust -q --product org.example.test --root root.pub"
        try bench.must("\(trust) keys --release release.pub -k root.key")
        try bench.must("\(trust) l --root evil.pub --release evil.pub -k evil.key; cp l/keys-1.json* keys")
        let refused = try bench.refusal("moult trust keys -k root.key", status: 3)
        #expect(refused.contains("keys-1.json was not signed with any of these keys"), "\(refused)")
        #expect(try Files.facts(bench.path("keys/keys-2.json")) == nil)
    }

    /// The links lead to files that only the user of the command can read.
    @Test(arguments: ["test-1.0.0.tar.zst", "test-1.0.0.json.minisig", "feed.json.minisig"])
    func `an export has no content of files behind planted links`(name: String) throws {
        try bench.key("a")
        try bench.release("1.0.0", sequence: 1)
        try bench.must(
            """
            moult publish public rel/test-1.0.0.json -q -k a.key; echo SECRET > secret; ls public
            moult init -q store --product org.example.test --feed public; moult apply -q
            f=public/\(name); test -e $f || f=$(ls public/test-1.0.0.tar*); rm -f $f; ln -s ../secret $f
            """)
        _ = try bench.run("moult export -q 1.0.0 stick; moult apply -q")
        let found = try bench.run("grep -rl SECRET stick store/.moult").output
        #expect(found.isEmpty, "\(found)")
    }

    @Test func `an upload has no content of files behind planted links`() throws {
        try bench.key("a")
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult publish public rel/test-1.0.0.json -q -k a.key; echo SECRET > secret; mkdir out")
        try bench.must("ln -s ../secret public/test-1.0.0.json.x.minisig; ln -s ../secret public/feed.json.x.minisig")
        try bench.must(
            "moult publish public -q -k a.key --new --fetch-with 'cp \"out/$MOULT_NAME\" \"$MOULT_FILE\"' --upload-with 'cp \"$MOULT_FILE\" \"out/$MOULT_NAME\"'"
        )
        #expect(try bench.run("grep -rl SECRET out").output.isEmpty)
        #expect(try Files.facts(bench.path("out/feed.json")) != nil)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may change owners"))
    func `a plan does not get the mode of another user's file`() throws {
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult init -q store --product org.example.test")
        try bench.must(": > plan.json; chown 65534 plan.json; chmod 666 plan.json")
        try bench.must("umask 077; moult plan rel/test-1.0.0.json -o plan.json || test $? = 2")
        #expect(try bench.must("stat -c '%U %a' plan.json") == "root 600\n")
    }
}
