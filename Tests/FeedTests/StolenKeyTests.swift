import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// After the theft of the release key and the timestamp key, and their replacement with the root key.
@Suite struct StolenKeyTests {
    private let bench: Bench

    /// A store with the release of a thief; `mine` is the publisher's copy of the feed from before the theft.
    init() throws {
        bench = try Bench()
        try bench.publishWithKeyList()
        try bench.must(
            "moult init -q --product org.example.test --key root.pub --feed public/feed.json && moult apply -q")
        try bench.must("cp -r public mine")
        try bench.release("9.9.9", sequence: (1 << 53) - 1)
        try bench.must(
            "moult publish -q public rel/test-9.9.9.json --serial 900000 -k release.key -k online.key && moult apply -q"
        )
        #expect(try bench.installed() == "9.9.9")
        for name in ["release-2", "online-2"] { try bench.key(name) }
        try bench.must("moult trust -q keys --release release-2.pub --timestamp online-2.pub -k root.key")
    }

    private func recover() throws {
        try bench.must("rm -r public; mv mine public")
        try bench.must("moult publish -q public --trust keys/keys-2.json -k release-2.key -k online-2.key")
    }

    @Test func `a store leaves the release of a thief by itself, also for an older one`() throws {
        try recover()
        let status = try bench.run("moult check")
        #expect(status.status == 2 && status.output.hasPrefix("1.0.0 is available, 9.9.9 is installed\n"), "\(status)")
        try bench.must("moult plan -o plan.json -q", status: 2)
        try bench.must("moult apply -q --plan plan.json")
        #expect(try bench.installed() == "1.0.0")
        let line = try bench.run("moult status --nagios")
        #expect(line.status == 0, "\(line.output)")
        // The release of the thief is still kept, and no command returns to it.
        #expect(
            try bench.refusal("moult rollback --reason x --to 9.9.9", status: 3).contains(
                "9.9.9 is not trusted any more: release 9.9.9 is signed only by"))
        try bench.release("1.0.1", sequence: 2)
        try bench.must("moult publish -q public rel/test-1.0.1.json -k release-2.key -k online-2.key && moult apply -q")
        #expect(try bench.installed() == "1.0.1")
        #expect(try bench.must("moult rollback -q --reason x; moult status --json").contains("\"version\":\"1.0.0\""))
    }

    @Test func `a newer release of the publisher is installed, although its sequence is lower`() throws {
        try recover()
        try bench.release("10.0.0", sequence: 2)
        try bench.must(
            "moult publish -q public rel/test-10.0.0.json -k release-2.key -k online-2.key && moult apply -q")
        #expect(try bench.installed() == "10.0.0")
    }

    @Test func `monitoring reports the release of a thief as critical`() throws {
        try recover()
        try bench.must("moult check -q", status: 2)
        let line = try bench.run("moult status --nagios")
        let id = try bench.id("release")
        #expect(
            line.status == 2
                && line.output.contains(
                    "CRITICAL - org.example.test 9.9.9; release 9.9.9 is signed only by \(id), which the publisher has revoked;"
                ),
            "\(line.output)")
        #expect(try bench.must("moult status --prometheus").contains("} 1\n# HELP moult_feed_serial"))
        #expect(
            try bench.must("moult status --json").contains(
                "\"revoked\":{\"version\":\"9.9.9\",\"signers\":[\"\(id)\"]}"))
    }

    @Test func `after a usual change of keys, stores keep their release`() throws {
        try bench.must(
            "moult publish -q public --withdraw 9.9.9 --reason stolen -k release.key -k online.key; moult apply -q --allow-downgrade"
        )
        #expect(try bench.installed() == "1.0.0")
        try bench.must(
            "moult publish -q public --trust keys/keys-2.json -k release-2.key -k online.key -k online-2.key && moult apply -q"
        )
        let line = try bench.run("moult status --nagios")
        #expect(line.status == 0 && line.output.contains("MOULT OK"), "\(line.output)")
    }

    @Test func `status shows the keys in force`() throws {
        try recover()
        try bench.must("moult apply -q")
        let (release, online, root) = (try bench.id("release-2"), try bench.id("online-2"), try bench.id("root"))
        #expect(
            try bench.must("moult status").contains("trusts   releases \(release), feed \(online), key lists \(root)\n")
        )
        #expect(try bench.must("moult status --json").contains("\"trusted\":[\"\(release)\",\"\(online)\"]"))
    }

    @Test func `the error for a replaced key names the list that replaced it`() throws {
        try recover()
        for key in ["release", "online"] {
            #expect(
                try bench.refusal("moult publish public -k \(key).key", status: 3) == """
                    moult: error: key \(try bench.id(key)) is not trusted any more: keys-2.json has replaced it, and stores refuse its signatures
                      Use a key of the list with --key FILE: \(try bench.id("online-2"))

                    """)
        }
    }

    /// The thief has overwritten the public feed, and the publisher's own copy replaces it.
    @Test func `the public feed of a thief is replaced by the publisher's own copy`() throws {
        let upload =
            "--upload-with 'cp \"$MOULT_FILE\" public/\"$MOULT_NAME\"' --fetch-with 'cp public/\"$MOULT_NAME\" \"$MOULT_FILE\"'"
        let publish = "moult publish -q mine --trust keys/keys-2.json -k release-2.key -k online-2.key \(upload)"
        #expect(
            try bench.refusal(publish, status: 3) == """
                moult: error: the public feed is not the one that this directory has published: the new keys would also sign what it \
                contains, such as 9.9.9
                  If another publisher has made it, first publish without --trust. If a key was stolen, replace it with this \
                directory's feed: add --new

                """)
        try bench.must("\(publish) --new && moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        try bench.must("moult publish public --check --trust root.pub -q")
    }
}

/// `moult publish` shows what will change, and names what the publisher may not intend.
@Suite struct PreviewTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.key("a")
        try bench.release("1.0.0", sequence: 1)
    }

    @Test func `--dry-run shows each change and publishes nothing`() throws {
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish -q public rel/test-1.0.0.json -k a.key")
        let before = try Tree(bench.path("public"))
        let text = try bench.must(
            "moult publish public rel/test-2.0.0.json --rollout 10 --channel beta -k a.key --dry-run")
        #expect(text.hasPrefix("public/feed.json  serial 1 -> 2, valid until "), "\(text)")
        #expect(text.hasSuffix("\n  + 2.0.0 for 10 % of machines that follow beta\n"), "\(text)")
        #expect(
            try bench.must("moult publish public --withdraw 1.0.0 --reason 'bad names' -k a.key --dry-run").hasSuffix(
                "\n  - 1.0.0 is withdrawn: bad names\n"))
        #expect(
            try bench.must("moult publish public --release 1.0.0 --rollout 50 -k a.key --dry-run").hasSuffix(
                "\n  ~ 1.0.0 for 50 % of machines, before 100 %\n"))
        #expect(try bench.must("moult publish public -k a.key --dry-run").hasSuffix("\n  = no release changes\n"))
        let json = try bench.must("moult publish public rel/test-2.0.0.json --rollout 10 -k a.key --dry-run --json")
        #expect(
            json.contains(
                "\"entries\":[{\"change\":\"added\",\"version\":\"2.0.0\",\"channel\":\"stable\",\"rollout\":10}]"))
        #expect(try Tree(bench.path("public")) == before)
        try bench.must("moult publish new rel/test-1.0.0.json -k a.key --dry-run && test ! -e new")
    }

    @Test func `a release for some machines is confirmed`() throws {
        #expect(
            try bench.must("moult publish public rel/test-1.0.0.json --rollout 10 -k a.key").hasPrefix(
                "+ 1.0.0 for 10 % of machines\n"))
    }

    @Test func `publish asks at a terminal`() throws {
        let asked = "script -qec \"moult publish public rel/test-1.0.0.json -k a.key\" /dev/null"
        let no = try bench.run("echo n | \(asked)")
        #expect(
            no.output.contains("+ 1.0.0 for all machines") && no.output.contains("Publish this now? [y/N]"),
            "\(no.output)")
        #expect(no.output.contains("nothing was published: the answer was not yes"))
        #expect(try Files.facts(bench.path("public/feed.json")) == nil)
        let yes = try bench.run("echo y | \(asked)")
        #expect(yes.status == 0, "\(yes.output)")
        #expect(try bench.feed()["serial"]?.integer == 1)
    }

    @Test func `a feed without a signature needs --allow-unsigned`() throws {
        #expect(
            try bench.refusal("moult publish public rel/test-1.0.0.json", status: 3) == """
                moult: error: no key is specified: stores refuse a feed without a signature, except from a directory if they trust no key
                  Add a key with --key FILE. To publish without a signature, add --allow-unsigned.

                """)
        #expect(try Files.facts(bench.path("public")) == nil)
        try bench.must("moult publish public rel/test-1.0.0.json --allow-unsigned -q")
    }

    private func setCreated(_ created: String, expires: String) throws {
        try bench.replaceFeed {
            $0.setting("created", to: .string(created)).setting("expires", to: .string(expires))
        }
    }

    @Test func `a clock that contradicts the previous feed stops the command`() throws {
        try bench.must("moult publish -q public rel/test-1.0.0.json -k a.key")
        try setCreated("2099-01-01T00:00:00Z", expires: "2099-02-01T00:00:00Z")
        let text = try bench.refusal("moult publish public -k a.key", status: 3)
        #expect(text.hasPrefix("moult: error: the clock of this machine may be wrong: it shows "), "\(text)")
        #expect(
            text.hasSuffix(
                "and the previous feed was made at 2099-01-01T00:00:00Z\n  Correct the clock. If it is right, add --ignore-clock.\n"
            ))
        try bench.must("moult publish -q public -k a.key --ignore-clock")
        try setCreated("2020-01-01T00:00:00Z", expires: "2020-02-01T00:00:00Z")
        #expect(
            try bench.refusal("moult publish public -k a.key", status: 3).contains(
                "and the previous feed expired at 2020-02-01T00:00:00Z"))
    }

    @Test func `a store refuses a feed from the future`() throws {
        try bench.must("moult publish -q public rel/test-1.0.0.json -k a.key")
        try bench.must("moult init -q --product org.example.test --key a.pub --feed public/feed.json")
        try setCreated("2099-01-01T00:00:00Z", expires: "2099-02-01T00:00:00Z")
        let text = try bench.refusal("moult check", status: 3)
        #expect(
            text.hasPrefix(
                "moult: error: \(bench.path("public/feed.json")) was made in the future: at 2099-01-01T00:00:00Z, and the clock of this machine shows "
            ))
    }

    @Test func `a feed expires with its key list, and publish warns 60 days before`() throws {
        for name in ["root", "b"] { try bench.key(name) }
        try bench.must(
            "moult trust -q keys --product org.example.test --root root.pub --release b.pub --days 15 -k root.key")
        let ended = try bench.run("moult publish public rel/test-1.0.0.json --trust keys/keys-1.json -k b.key")
        #expect(
            ended.status == 0 && ended.errors.hasPrefix("moult: warning: keys-1.json expires at "), "\(ended.errors)")
        #expect(ended.errors.contains("To renew it: moult trust keys --key root.key\n"))
        let list = try JSON(parsing: try Files.read(bench.path("keys/keys-1.json"), limit: 1 << 20) ?? [], source: "k")
        #expect(try bench.feed()["expires"]?.string == list["expires"]?.string)
        try bench.must(
            "moult init -q --product org.example.test --key root.pub --feed public/feed.json && moult apply -q")
        #expect(try bench.run("moult status --nagios").output.contains("the key list keys-1.json expires at "))
    }
}
