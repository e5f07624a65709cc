import TestSupport
import Testing

/// A wrong kind of file or address: the message says which kind it is and which command to use.
@Suite(.tags(.thorough)) struct WrongFileTests {
    private let world: VerbWorld
    init() throws {
        world = try VerbWorld()
        try world.install(world.first)
        try world.must("moult keygen -q --no-password key")
        try world.must("moult init -q signed --product org.example.test --key key.pub")
        try world.must("sqlite3 food.sqlite 'CREATE TABLE t(a)'")
        try world.must(
            #"echo '{"manifest":1,"product":"org.example.test","version":"3.0.0","databases":{"food":{"kind":"reference","source":"food.sqlite"}}}' > d.json"#
        )
    }

    private func error(_ line: String) throws -> String { try world.run(line).err }

    @Test(arguments: ["store", "signed"])
    func `the error for a database in place of a manifest says that it is a database`(
        _ store: String
    ) throws {
        try world.must("sqlite3 my.sqlite 'CREATE TABLE t(a)'")
        #expect(
            try error("moult apply --store \(store) my.sqlite")
                == "moult: error: my.sqlite is a database, not the manifest of a release\n"
                + "  Pack a release from it: moult pack my.sqlite\n")
    }

    @Test(arguments: ["store", "signed"])
    func `the error for a bundle in place of a manifest says that it is a bundle`(_ store: String) throws {
        let bundle = "rel/test-1.0.0"
        #expect(
            try error("moult apply --store \(store) rel/test-1.0.0.tar.zst")
                == """
                moult: error: \(bundle).tar.zst is an archive (data compressed with zstd), not the manifest of a release
                  Install the release from its manifest: moult apply \(bundle).json --store \(store)

                """)
        try world.must("mkdir alone; cp rel/test-1.0.0.tar.zst alone")
        #expect(
            try error("moult apply --store \(store) alone/test-1.0.0.tar.zst").hasSuffix(
                "\n  Specify the manifest of the release. `moult pack` writes it next to the bundle.\n"))
    }

    @Test(arguments: ["store", "signed"])
    func `the error for a draft in place of a manifest says that it is a draft`(_ store: String) throws {
        #expect(
            try error("moult apply --store \(store) d.json")
                == """
                moult: error: d.json is a draft, not the manifest of a release
                  Pack a release from it: moult pack d.json

                """)
    }

    @Test(
        arguments: [
            (
                "moult pack full", 1, "cannot pack full: the directory has no SQLite database",
                "Specify a database file, or the draft of a release: moult help draft"
            ),
            (
                "moult pack text", 1, "cannot pack text: it is neither a SQLite database nor a draft, which is JSON",
                "Specify a database file, or the draft of a release: moult help draft"
            ),
            (
                "moult pack none.db --product org.example.test", 1, "cannot pack none.db: no such file",
                "Specify a database file, or the draft of a release: moult help draft"
            ),
            (
                "moult pack d.json -o made", 3,
                "made/test-3.0.0.json already exists with different content: a published version must not change",
                "Choose another version for the release, or pack into another directory: --output DIR."
            ),
            (
                "moult publish public food.sqlite -k key.key", 1,
                "food.sqlite is a database, not the manifest of a release",
                "Pack a release from it: moult pack food.sqlite"
            ),
            (
                "moult publish food.sqlite -k key.key", 1,
                "food.sqlite is a database, not the manifest of a release",
                "Pack a release from it: moult pack food.sqlite"
            ),
            (
                "moult publish public rel/test-1.0.0.tar.zst --rollout 10 -k key.key", 1,
                "rel/test-1.0.0.tar.zst is an archive (data compressed with zstd), not the manifest of a release",
                "Publish the release from its manifest: moult publish public rel/test-1.0.0.json --key key.key --rollout 10"
            ),
            (
                "moult publish public d.json -k key.key", 1, "d.json is a draft, not the manifest of a release",
                "Pack a release from it: moult pack d.json"
            ),
            (
                "moult publish public text -k key.key", 1,
                "text is not valid JSON: line 1, column 1: expected a value, found 'h'",
                "Specify the manifest of a release, such as releases/app-1.0.0.json."
            ),
            (
                "moult publish rel/test-1.0.0.json --rollout 10 -k key.key", 1,
                "rel/test-1.0.0.json is not a directory: the first argument is the directory of the feed",
                "Specify the directory first: moult publish public rel/test-1.0.0.json --key key.key --rollout 10"
            ),
            (
                "moult publish rel/test-1.0.0.json public -k key.key", 1,
                "rel/test-1.0.0.json is not a directory: the first argument is the directory of the feed",
                "Specify the directory first: moult publish public rel/test-1.0.0.json --key key.key"
            ),
            (
                "moult publish public/feed.json --check", 1,
                "public/feed.json is not a directory: the first argument is the directory of the feed",
                "Specify the directory: moult publish public --check"
            ),
            (
                "moult publish public -k ky.key", 1, "no secret key at ky.key: no such file",
                #"Specify the file of the secret key. Did you mean "key.key"? To create a new key pair: moult keygen ky"#
            ),
            (
                "moult publish public -k ./kye.key", 1, "no secret key at ./kye.key: no such file",
                #"Specify the file of the secret key. Did you mean "./key.key"? To create a new key pair: moult keygen ./kye"#
            ),
            (
                "moult sign -k other text", 1, "no secret key at other: no such file",
                "Specify the file of the secret key. To create a new key pair: moult keygen other"
            ),
            (
                "moult init new --product org.example.test --key key.key", 3,
                "key.key is a secret key: a store needs the public key",
                "Specify key.pub, and keep the secret key with the publisher."
            ),
            (
                "moult apply --create rel/test-1.0.0.json --store new --key full/other.key", 3,
                "full/other.key is a secret key: a store needs the public key",
                "Specify its .pub file, and keep the secret key with the publisher."
            ),
            (
                "moult plan publc", 1, "no release at publc: no such file",
                "Specify the manifest of a release, the directory of a feed, or a URL that starts with https:// or oci://."
            ),
            ("moult sign -k full text", 1, "cannot read full: it is a directory", nil),
            (
                "moult inspect public/feed.json", 1,
                "public/feed.json is a feed, not a release: it lists releases, each with a manifest",
                "Specify the manifest of a release. To check the feed: moult publish public --check"
            ),
            (
                "moult apply -s text rel/test-1.0.0.json", 1, "text is not a store: it is not a directory",
                "Specify the directory of a store with --store DIR."
            ),
            (
                "moult init text --product org.example.test", 1, "text is not a store: it is not a directory",
                "Specify the directory of a store with --store DIR."
            ),
            (
                "moult rollback --to 1.0.0", 3,
                "1.0.0 is already installed: no other generation is kept",
                "Install an older release: moult apply RELEASE --allow-downgrade"
            ),
            ("moult verify nope", 64, #"release 1.0.0 has no database "nope": its databases are food, user"#, nil),
            (
                "moult watch --since nope", 64,
                #"--since needs the name of a generation, not "nope": the name is a version, a plus sign and eight hexadecimal digits, as shown by `moult status`"#,
                "Try: moult watch --help"
            ),
            (
                "moult publish public --reason why -k key.key", 64, "--reason needs --withdraw VERSION",
                "Try: moult publish --help"
            ),
            (
                "cd full; moult diff ../food.sqlite", 64,
                "diff needs OLD and NEW: a single argument is compared with a store, and no store was found",
                "Try: moult diff --help"
            ),
        ] as [(String, Int32, String, String?)])
    func `the error names a wrong argument, and nothing is changed`(
        line: String, status: Int32, what: String, now: String?
    ) throws {
        try world.must(
            """
            mkdir full; touch full/file; cp key.key full/other.key; echo hello > text; moult publish -q public rel/test-2.0.0.json -k key.key
            moult pack -q d.json -o made; sqlite3 food.sqlite 'INSERT INTO t VALUES(1)'
            """)
        let before = try world.must("find . -type f | sort | xargs cksum")
        let ended = try world.run(line)
        #expect(ended.status == status)
        #expect(ended.err == "moult: error: \(what)\n" + (now.map { "  \($0)\n" } ?? ""))
        #expect(try world.must("find . -type f | sort | xargs cksum") == before)
    }

    @Test func `a release that was withdrawn is installed with a warning`() throws {
        try world.must(
            """
            moult publish -q public rel/test-2.0.0.json -k key.key
            moult publish public --withdraw 2.0.0 --reason 'bad names' -k key.key | grep -qx -- '- 2.0.0 is withdrawn: bad names'
            """)
        let warning = "moult: warning: release 2.0.0 was withdrawn by its publisher: bad names\n"
        #expect(try error("moult plan public/test-2.0.0.json") == warning)
        // The feed that the store has seen also identifies a copy of the release as withdrawn.
        #expect(try error("moult plan rel/test-2.0.0.json") == "")
        try world.must("moult check -q --feed public")
        #expect(try error("moult apply -q rel/test-2.0.0.json") == warning)
    }

    @Test func `publish --check accepts a key list instead of keys`() throws {
        try world.must(
            """
            moult keygen -q --no-password root; moult keygen -q --no-password online
            moult trust keys --product org.example.test --root root.pub --release key.pub --timestamp online.pub --key root.key
            moult publish -q public rel/test-1.0.0.json -k key.key -k online.key --trust keys/keys-1.json
            moult publish public --check --trust keys/keys-1.json
            """)
    }

    @Test func `the error for a missing feed on the command line does not refer to the settings`() throws {
        #expect(
            try error("moult check --feed /none")
                == "moult: error: no feed at /none: it does not exist\n  Check the address of the feed.\n")
    }

    @Test func `the error for an unknown database lists the databases that can be reset`() throws {
        #expect(
            try error("moult reset nope")
                == "moult: error: release 1.0.0 has no database \"nope\": the databases that can be reset are user\n")
    }

    @Test(arguments: [("--fore 3", "--force-after"), ("--stor x", "--store"), ("--create-", "--create")])
    func `the error for an abbreviated option suggests the full option`(_ words: String, whole: String) throws {
        #expect(try error("moult apply \(words)").contains("did you mean \"\(whole)\"?\n"))
    }

    @Test(arguments: ["--out", "--output", "-o"])
    func `plan saves to a file with --out, --output or -o`(_ option: String) throws {
        try world.must(
            "moult plan -q \(option) saved.plan \(world.second) || [ $? = 2 ] && [ -s saved.plan ]")
    }

    /// Even a huge value takes only a few lines in a message and in the history.
    @Test func `a huge number, name or query does not fill the screen`() throws {
        try world.must("printf '{\"version\":%0100000d}' 1 > number.json; sed 's/0001}/x}/' -i number.json")
        try world.must("printf '{\"manifest\":1,\"product\":\"%0100000d\"}' 1 > product.json")
        try world.must(#"printf '{"manifest":1,"product":"org.example.test","version":"%0100000d"}' 1 > version.json"#)
        for file in ["number.json", "product.json", "version.json"] {
            let said = try error("moult apply \(file)")
            #expect(said.utf8.count < 600, "\(file): \(said.utf8.count) bytes")
        }
    }
}
