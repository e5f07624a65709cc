import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Tests what root, release and timestamp keys may sign, and what an attacker cannot do with a stolen key.
@Suite struct SplitKeyTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.key("new")
        try bench.publishWithKeyList()
        try bench.must(
            "moult init --product org.example.test --key root.pub --feed public/feed.json -q; moult apply -q")
    }

    private var feed: String { bench.path("public/feed.json") }
    private var list: String { bench.path("store/.moult/keys/keys-1.json") }

    private func refused(_ line: String, _ message: String) throws {
        let before = try Tree(bench.path("store"), times: false, skipping: [".moult/downloads", ".moult/feed"])
        #expect(try bench.refusal(line, status: 3) == "moult: error: \(message)\n")
        #expect(try Tree(bench.path("store"), times: false, skipping: [".moult/downloads", ".moult/feed"]) == before)
    }

    @Test func `a store that pins the root key follows the key list`() throws {
        #expect(try bench.installed() == "1.0.0")
        let plan = try bench.must("moult publish public -q -k online.key; moult check")
        #expect(plan.contains("serial 2, signed by \(try bench.id("online")),"))
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k release.key -k online.key")
        #expect(
            try bench.run("moult plan").output.split(separator: "\n")[0].hasSuffix(
                ", signed by \(try bench.id("release")))"))
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    /// Otherwise one of the lists would replace the other, and a key that it adds would be missing.
    @Test func `key lists are made one after the other`() throws {
        let before = try bench.must("ls keys; cat keys/*.json")
        let text = try bench.refusal(
            "flock keys/.moult-lock moult trust keys --release new.pub -k root.key", status: 75)
        #expect(text.contains("keys is in use"), "\(text)")
        #expect(try bench.must("ls keys; cat keys/*.json") == before)
        try bench.must("moult trust keys -q --release new.pub -k root.key")
    }

    @Test func `publishing a signed release requires only the timestamp key`() throws {
        try bench.release("2.0.0", sequence: 2)
        try bench.must(
            "moult sign -q rel/test-2.0.0.json -k release.key; moult publish public rel/test-2.0.0.json -q -k online.key"
        )
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    /// The attacker can make the same feed as the publisher, but has no release key.
    @Test func `an attacker with a stolen timestamp key cannot install a release`() throws {
        try bench.release("2.0.0", sequence: 2)
        try bench.must("cp -r public keep; rm public/keys-*")
        try bench.must("moult publish public rel/test-2.0.0.json -q -k online.key; cp keep/keys-* public")
        try refused(
            "moult apply",
            """
            \(bench.path("public/test-2.0.0.json")) is not signed by a trusted key: its signature is by key \(try bench.id("online")); the trusted key is \
            \(try bench.id("release"))
              Ask the publisher for a file signed with its current keys, which are listed in \(list).
            """)
        try bench.must("rm public/test-2.0.0.json.minisig")
        try refused(
            "moult apply",
            """
            \(bench.path("public/test-2.0.0.json")) is not signed: this store accepts only files signed by a trusted key, and \
            \(bench.path("public/test-2.0.0.json")).minisig does not exist; the trusted key is \(try bench.id("release"))
              Get the signature from the publisher, and put it next to the file.
            """)
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `an attacker with a stolen timestamp key cannot pass off an old release as a new one`() throws {
        try bench.replaceFeed(by: "online") { feed in
            let release = (feed["releases"]?.array?.first ?? .null).setting("version", to: "9.0.0")
            return feed.setting("serial", to: 2).setting("releases", to: .array([release.setting("sequence", to: 9)]))
        }
        try refused(
            "moult apply",
            """
            \(bench.path("public/test-1.0.0.json")) is not the release listed in the feed: version is 1.0.0 in the \
            manifest and 9.0.0 in the feed
              Report this to the publisher.
            """)
    }

    @Test func `an attacker with a stolen timestamp key cannot change the requirements of a release`() throws {
        try bench.release("2.0.0", sequence: 2, top: [.init("requires", ["from": "<1.0.0"])])
        try bench.must("moult publish public rel/test-2.0.0.json -q -k release.key -k online.key")
        try bench.replaceFeed(by: "online") { feed in
            let releases = (feed["releases"]?.array ?? []).map { $0.setting("requires", to: nil) }
            return feed.setting("serial", to: 3).setting("releases", to: .array(releases))
        }
        try refused(
            "moult apply",
            """
            \(bench.path("public/test-2.0.0.json")) is not the release listed in the feed: requires is from <1.0.0 \
            in the manifest and nothing in the feed
              Report this to the publisher.
            """)
    }

    @Test(arguments: ["release", "root"])
    func `only timestamp keys can sign the feed`(key: String) throws {
        try bench.replaceFeed(by: key) { $0.setting("serial", to: 2) }
        try refused(
            "moult apply",
            """
            \(feed) is not signed by a trusted key: its signature is by key \(try bench.id(key)); the trusted key is \
            \(try bench.id("online"))
              Ask the publisher for a file signed with its current keys, which are listed in \(list).
            """)
    }

    @Test(arguments: ["online", "root"])
    func `only release keys can sign manifests`(key: String) throws {
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult sign -q rel/test-2.0.0.json -k \(key).key")
        let path = bench.path("rel/test-2.0.0.json")
        try refused(
            "moult apply rel/test-2.0.0.json",
            """
            \(path) is not signed by a trusted key: its signature is by key \(try bench.id(key)); the trusted key is \
            \(try bench.id("release"))
              Ask the publisher for a file signed with its current keys, which are listed in \(list).
            """)
    }

    /// Neither the release key nor the timestamp key may appoint other keys.
    @Test func `only root keys can sign key lists`() throws {
        try bench.must("cp -r keys forged; rm forged/*.minisig")
        try bench.must(
            "sed -i 's/\"serial\": 1/\"serial\": 2/' forged/keys-1.json; mv forged/keys-1.json public/keys-2.json")
        for key in ["release", "online"] {
            try bench.must("rm -f public/keys-2.json.*; moult sign -q public/keys-2.json -k \(key).key")
            try bench.must("moult publish public -q -k online.key", status: 3)
            let before = try Files.list(bench.path("store/.moult/keys"))
            try bench.must("moult check")
            #expect(try Files.list(bench.path("store/.moult/keys")) == before)
        }
    }

    @Test func `a key list that its own root keys did not sign is refused`() throws {
        try bench.must("moult trust keys -q --root new.pub -k root.key")
        #expect(try bench.must("ls keys").contains("keys-2.json\n"))
        let refusal = try bench.refusal("moult publish public --trust keys/keys-2.json -k online.key", status: 3)
        #expect(
            refusal.contains(
                "is not signed with its own root keys: the list needs a signature by key \(try bench.id("new"))"))
        // Stores also refuse the new list, and keep the list that they have.
        try bench.must("cp keys/keys-2.json* public")
        try bench.must("moult publish public -q -k online.key", status: 3)
        try bench.replaceFeed(by: "online") { $0.setting("serial", to: 2) }
        #expect(try bench.refusal("moult check", status: 3).contains("is not signed with its own root keys"))
        try bench.must("moult sign -q keys/keys-2.json -k new.key")
        try bench.must("moult publish public -q --trust keys/keys-2.json -k online.key --serial 3", status: 3)
        try bench.must("cp keys/keys-2.json* public; moult publish public -q -k online.key; moult check")
    }

    @Test func `releases need as many signatures as the threshold requires`() throws {
        try bench.must("moult trust keys -q --release release.pub --release new.pub --threshold release=2 -k root.key")
        let short = try bench.refusal(
            "moult publish public --trust keys/keys-2.json -k online.key -k new.key -q; moult publish public --trust keys/keys-2.json -k online.key -q; false",
            status: 1)
        #expect(short == "")
        // A threshold is only lowered if the publisher requests it.
        #expect(
            try bench.refusal("moult trust keys --release new.pub -k root.key", status: 3)
                == "moult: error: the role release has 1 key: it needs 2 signatures\n"
                + "  Give it more keys with --release KEY.pub, or choose a lower --threshold release=N.\n")
        try bench.release("2.0.0", sequence: 2)
        #expect(
            try bench.refusal("moult publish public rel/test-2.0.0.json -k online.key -k release.key", status: 3)
                == "moult: error: test-2.0.0.json lacks signatures by release keys: stores require signatures by at least 2 of these keys: "
                + "\(try bench.id("release")), \(try bench.id("new"))\n"
                + "  Use a release key with --key FILE, or sign the manifest on the machine that has the key: moult sign MANIFEST --key FILE\n"
        )
        try bench.must(
            "moult publish public rel/test-2.0.0.json -q -k online.key -k release.key -k new.key; moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        // One of the two signatures is not enough, even if it is in two files.
        try bench.release("3.0.0", sequence: 3)
        try bench.must("moult publish public rel/test-3.0.0.json -q -k online.key -k release.key -k new.key")
        let (one, other) = (try bench.id("release"), try bench.id("new"))
        try bench.must("cd public; cp test-3.0.0.json.\(one).minisig test-3.0.0.json.\(other).minisig")
        #expect(try bench.refusal("moult apply", status: 3).contains("test-3.0.0.json has too few signatures"))
    }

    @Test func `a key list needs as many root signatures as its threshold requires`() throws {
        let roots = "--root root.pub --root new.pub --threshold root=2"
        let made = try bench.must("moult trust keys \(roots) -k root.key --json")
        let both =
            "the list needs signatures by at least 2 of these keys: \(try bench.id("root")), \(try bench.id("new"))"
        #expect(
            try JSON(parsing: Array(made.utf8), source: "made")["missing"]?.string == both)
        #expect(
            try bench.refusal("moult publish public --trust keys/keys-2.json -k online.key", status: 3)
                == "moult: error: keys/keys-2.json is not signed with its own root keys: \(both)\n"
                + "  Sign it with a root key: moult sign keys/keys-2.json --key ROOT.key\n")
        try bench.must("moult sign -q keys/keys-2.json -k new.key")
        try bench.must("moult publish public -q --trust keys/keys-2.json -k online.key; moult check")
        // From now on, one signature is not enough, even if it is in two files.
        try bench.must("moult trust keys -q -k root.key")
        try bench.must("cp keys/keys-3.json.minisig keys/keys-3.json.$(head -1 new.pub | sed 's/.* //').minisig")
        #expect(
            try bench.refusal("moult publish public --trust keys/keys-3.json -k online.key", status: 3)
                .contains("keys/keys-3.json is not signed by the keys of list 2: \(both)"))
        try bench.must("cp keys/keys-3.json* public")
        #expect(try bench.must("moult check; ls store/.moult/keys").contains("keys-3") == false)
    }

    // MARK: time

    /// Sets the expiry of a key list to the past, as if a year had passed, and publishes the list.
    private func expire(_ list: String) throws {
        try bench.must(
            #"sed -i 's/"expires": "[^"]*"/"expires": "2026-01-01T00:00:00Z"/' keys/\#(list); moult sign -q keys/\#(list) -k root.key; cp keys/\#(list)* public"#
        )
    }

    @Test func `nothing is installed when the key list has expired`() throws {
        try bench.must(
            "moult trust keys -q -k root.key; moult publish public -q --trust keys/keys-2.json -k online.key")
        try expire("keys-2.json")
        let message = """
            the keys of org.example.test have expired: keys-2.json, the newest key list that this store has, expired \
            at 2026-01-01T00:00:00Z
              Ask the publisher for a newer key list, then run: moult check --store \(bench.path("store"))
            """
        #expect(try bench.refusal("moult apply", status: 3) == "moult: error: \(message)\n")
        #expect(try bench.refusal("moult apply --store store", status: 3) == "moult: error: \(message)\n")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult sign -q rel/test-2.0.0.json -k release.key")
        #expect(try bench.refusal("moult apply rel/test-2.0.0.json", status: 3) == "moult: error: \(message)\n")
        #expect(
            try bench.refusal("moult publish public -k online.key", status: 3)
                == "moult: error: the key list keys-2.json has expired: it was valid until 2026-01-01T00:00:00Z, and stores refuse all files signed under it\n"
                + "  Publish the next list with --trust keys/keys-3.json. To create it: moult trust keys --key ROOT.key\n"
        )
        let status = try bench.run("moult status --nagios")
        #expect(status.status == 1)
        #expect(status.output.contains("the key list keys-2.json expired at 2026-01-01T00:00:00Z"), "\(status.output)")
        // The installed release can still be used, and the next key list resolves the problem.
        try bench.must("moult verify")
        try bench.must("moult trust keys -q -k root.key")
        try bench.must(
            "moult publish public rel/test-2.0.0.json -q --trust keys/keys-3.json -k online.key; moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    // MARK: from one key to several

    @Test func `a store that pins one key switches to separate keys`() throws {
        try bench.must(
            "chmod -R u+w store; rm -r public store keys; moult publish public rel/test-1.0.0.json -q -k new.key")
        try bench.must("moult init --product org.example.test --key new.pub --feed public/feed.json -q; moult apply -q")
        try bench.must(
            "moult trust keys -q --product org.example.test --root root.pub --release release.pub --timestamp online.pub -k root.key -k new.key"
        )
        try bench.must(
            "moult publish public -q --trust keys/keys-1.json -k new.key -k release.key -k online.key; moult check")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k release.key -k online.key; moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        try bench.replaceFeed(by: "new") { $0.setting("serial", to: 9) }
        #expect(try bench.refusal("moult check", status: 3).contains("the trusted key is \(try bench.id("online"))\n"))
    }

    @Test func `an exported set contains the key lists`() throws {
        try bench.must("moult export 1.0.0 stick -q; moult init other --product org.example.test --key root.pub -q")
        try bench.must("moult apply -q --store other --feed stick/feed.json; rm stick/keys-*")
        #expect(
            try bench.run(
                "moult init third --product org.example.test --key root.pub -q; moult apply --store third --feed stick/feed.json"
            ).status == 3)
    }

    // MARK: the publisher's mistakes

    @Test func `publish refuses releases with signatures that stores would refuse`() throws {
        try bench.release("2.0.0", sequence: 2)
        func refusal(_ options: String) throws -> String {
            let before = try Tree(bench.path("public"), times: false)
            let text = try bench.refusal("moult publish public rel/test-2.0.0.json \(options)", status: 3)
            #expect(try Tree(bench.path("public"), times: false) == before)
            return text
        }
        let online = try bench.id("online")
        #expect(
            try refusal("-k release.key")
                == "moult: error: the feed lacks signatures by timestamp keys: stores require a signature by key \(online)\n"
                + "  Use a timestamp key with --key FILE.\n")
        #expect(try refusal("-k online.key").contains("test-2.0.0.json lacks signatures by release keys"))
        #expect(
            try refusal("-k online.key -k root.key")
                == "moult: error: key \(try bench.id("root")) is not allowed to publish: it is a root key, which signs key lists only\n"
                + "  Use a key of the list with --key FILE, or create a list with this key: moult trust keys --release KEY.pub --key ROOT.key\n"
        )
        #expect(
            try refusal("-k online.key -k new.key").contains(
                "keys-1.json has this key neither as a release key nor as a timestamp key"))
        #expect(
            try refusal("-k online.key -k release.key --trust new.pub").contains("keys-1.json has keys for each role"))
    }
}
