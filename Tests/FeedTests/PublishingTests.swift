import MoultBasics
import MoultFiles
import StepKit
import Synchronization
import TestSupport
import Testing

/// `moult publish` writes static files that form a complete feed at every moment.
@Suite struct PublishingTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.key("a")
        try bench.release("1.0.0", sequence: 10)
        try bench.must("moult publish public rel/test-1.0.0.json -k a.key -q")
    }

    private func refused(_ line: String, _ message: String) throws {
        let before = try Tree(bench.path("public"), times: false)
        #expect(try bench.refusal("moult publish public \(line)", status: 3) == "moult: error: \(message)\n")
        #expect(try Tree(bench.path("public"), times: false) == before)
    }

    @Test(.tags(.thorough)) func `minisign verifies the feed`() throws {
        try bench.must(
            "minisign -V -q -p a.pub -m public/feed.json && minisign -V -q -p a.pub -m public/test-1.0.0.json")
        let feed = try Feed(parsing: Files.read(bench.path("public/feed.json"), limit: 1 << 20) ?? [], source: "feed")
        #expect(feed.serial == 1 && feed.releases.map(\.sequence) == [10])
        #expect(try Feed(parsing: Array(feed.json.line.utf8), source: "again") == feed)
    }

    @Test func `a first publish that fails leaves no directory behind`() throws {
        let ended = try bench.run("moult publish new rel/test-9.9.9.json -k a.key")
        #expect(ended.status == 1)
        #expect(try Files.facts(bench.path("new")) == nil)
        try bench.must("mkdir own")
        #expect(try bench.run("moult publish own rel/test-9.9.9.json -k a.key").status == 1)
        #expect(try Files.facts(bench.path("own"))?.kind == .directory)
    }

    /// Someone without a key can write to the directory, and the publisher renews the feed.
    @Test func `a feed that was changed after it was signed is not signed again`() throws {
        try bench.must("sed -i 's/\"1.0.0\"/\"1.0.1\"/' public/feed.json")
        try refused(
            "-k a.key",
            """
            public/feed.json was changed after it was signed: no signature next to it matches, and a new one would cover the change
              Restore the feed and its signatures from a copy that you trust, then publish again.
            """)
    }

    @Test(
        arguments: [
            (#"{"a":1}"#, 3, #"public/feed.json is not a feed: it has no field "feed""#),
            ("[]", 3, #"public/feed.json is not a feed: it has no field "feed""#),
            (
                #"{"feed":1,"product":"org.example.test","serial":0}"#, 3,
                "public/feed.json: serial must be at least 1"
            ),
            (
                #"{"feed""#, 1,
                "public/feed.json is not valid JSON: line 1, column 8: expected ':' after \"feed\""
            ),
        ] as [(String, Int32, String)])
    func `a damaged feed.json must be restored`(content: String, status: Int32, message: String) throws {
        try bench.must("printf '%s' '\(content)' > public/feed.json")
        let advice = "Restore feed.json and feed.json.minisig from a copy."
        // A command that signs verifies the signature before it parses anything.
        #expect(
            try bench.refusal("moult publish public -k a.key", status: 3).contains("was changed after it was signed"))
        for line in ["--check", "--check --trust a.pub", "--list-uploads"] {
            #expect(
                try bench.refusal("moult publish public \(line)", status: status)
                    == "moult: error: \(message)\n  \(advice)\n")
        }
    }

    @Test func `a new feed is printed as new`() throws {
        let text = try bench.must("moult publish new rel/test-1.0.0.json -k a.key")
        #expect(text.contains("\n+ new/feed.json  new feed, serial 1, 1 release, "), "\(text)")
        #expect(try bench.must("moult publish new -k a.key").hasPrefix("~ new/feed.json  serial 2, 1 release, "))
    }

    @Test func `a directory that has lost its feed does not start a new one`() throws {
        try bench.release("2.0.0", sequence: 20)
        try bench.must("moult publish -q public rel/test-2.0.0.json -k a.key")
        try bench.must("moult init --product org.example.test --key a.pub --feed public/feed.json -q && moult apply -q")
        try bench.must("rm public/feed.json*; cp -r public other")
        let before = try Tree(bench.path("public"), times: false)
        for manifest in ["", "rel/test-2.0.0.json"] {
            #expect(
                try bench.refusal("moult publish public \(manifest) -k a.key", status: 3) == """
                    moult: error: public has no feed.json, but has signed releases (test-2.0.0.json and 1 other): stores that have \
                    seen an earlier feed of this directory refuse one that starts again
                      Restore feed.json and its signatures from a copy, or continue with a serial above the last one: --serial N. \
                    If no store has seen a feed of this directory: --new

                    """)
        }
        #expect(try Tree(bench.path("public"), times: false) == before)
        try bench.must("moult publish -q public rel/test-2.0.0.json --serial 3 -k a.key && moult check -q")
        // With a serial, and in a directory with only its own releases, a new feed needs no warning.
        #expect(try bench.run("moult publish -q other rel/test-2.0.0.json --serial 3 -k a.key").errors == "")
        try bench.must("moult sign -q rel/*.json -k a.key")
        #expect(try bench.run("moult publish -q rel rel/test-1.0.0.json rel/test-2.0.0.json -k a.key").errors == "")
    }

    @Test func `a version can be published only once`() throws {
        try bench.release("1.0.0", sequence: 11, rows: 3)
        try refused(
            "rel/test-1.0.0.json -k a.key",
            """
            version 1.0.0 is already published: the content of a version must never change
              Choose another version for the release.
            """)
    }

    @Test func `publishing a version again with different options is refused, and the error says what to do`() throws {
        try refused(
            "rel/test-1.0.0.json --rollout 10 -k a.key",
            """
            version 1.0.0 is already published: it is rolled out to 100 % of machines, and this command would change that to 10 %
              To change the rollout of a published release: moult publish public --release 1.0.0 --rollout 10 --key FILE
            """)
        try refused(
            "rel/test-1.0.0.json --channel beta -k a.key",
            """
            version 1.0.0 is already published: it is in the channel stable
              Choose another version for the release.
            """)
        try bench.must("moult publish public --withdraw 1.0.0 --reason typo -q -k a.key")
        try refused(
            "rel/test-1.0.0.json -k a.key",
            """
            version 1.0.0 is already published: it was withdrawn: typo; a withdrawal cannot be undone
              Choose another version for the release.
            """)
        try refused(
            "--release 1.0.0 --rollout 100 -k a.key",
            """
            release 1.0.0 cannot be rolled out: it was withdrawn: typo
              Publish its content as a new version.
            """)
    }

    @Test func `a promoted release has the same files, and stores of its new channel get it`() throws {
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json --channel beta -q -k a.key")
        try bench.must("moult init --product org.example.test --key a.pub --feed public/feed.json -q; moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        let before = try bench.feed()["releases"]?.array?.last
        try refused(
            "rel/test-2.0.0.json -k a.key",
            """
            version 2.0.0 is already published: it is in the channel beta
              To offer the published release to other stores: moult publish public --promote 2.0.0 --to stable --key FILE
            """)
        let promote = "moult publish public --promote 2.0.0 --to stable -k a.key"
        let preview = try bench.must("\(promote) --rollout 10 --dry-run")
        #expect(preview.contains("  ~ 2.0.0 for 10 % of machines, before for all machines that follow beta\n"))
        for _ in 1...2 {
            #expect(try bench.must(promote).contains("~ 2.0.0 is promoted to stable, for all machines\n"))
        }
        #expect(try bench.feed()["releases"]?.array?.last == before?.setting("channel", to: nil))
        try bench.must("moult publish public --check --trust a.pub; moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        try refused(
            "--promote 2.0.0 --to stable --rollout 10 -k a.key",
            """
            release 2.0.0 cannot be promoted to stable: it is in this channel, for all machines
              To change the rollout of a published release: moult publish public --release 2.0.0 --rollout 10 --key FILE
            """)
        try refused(
            "--promote 2.0.0 --to beta -k a.key",
            """
            release 2.0.0 cannot be promoted to beta: stores of every channel get the releases of stable
              Withdraw it, or change its rollout.
            """)
    }

    @Test func `the serial of a feed only increases`() throws {
        try refused(
            "--serial 1 -k a.key",
            """
            the feed cannot have serial 1: the current feed has serial 1, and stores accept only a higher one
              Choose a higher serial, or omit --serial.
            """)
        try bench.must("moult publish public --serial 7 -k a.key -q")
        #expect(try bench.feed()["serial"]?.integer == 7)
    }

    @Test func `publish without a key is refused if the feed is signed`() throws {
        try refused(
            "",
            """
            public/feed.json is signed, but no key is specified: stores that trust its key would refuse an unsigned feed
              Add the key with --key FILE.
            """)
    }

    @Test func `publish does not replace a different file with the same name`() throws {
        try bench.release("2.0.0", sequence: 20)
        try bench.must("echo other > public/test-2.0.0.tar.zst")
        try refused(
            "rel/test-2.0.0.json -k a.key",
            """
            public/test-2.0.0.tar.zst already exists with different content: published files must not change
              Choose another version for the release. If its file names do not contain the version, pack it without --name.
            """)
    }

    @Test func `publish refuses a damaged bundle`() throws {
        try bench.release("2.0.0", sequence: 20)
        try bench.must("echo >> rel/test-2.0.0.tar.zst")
        try refused(
            "rel/test-2.0.0.json -k a.key",
            """
            rel/test-2.0.0.tar.zst does not match the manifest: its size or SHA-256 differs
              Pack the release again.
            """)
    }

    @Test func `publish refuses a release of another product`() throws {
        try bench.must(#"sed 's/org.example.test/org.example.other/' rel/test-1.0.0.json > rel/other.json"#)
        try refused(
            "rel/other.json -k a.key",
            """
            rel/other.json is a release of org.example.other: the feed is for org.example.test
              Publish it to the feed of its product.
            """)
    }

    /// At every moment of publishing, readers find a feed with its signature.
    @Test func `readers never see a feed without its signature`() throws {
        try bench.must("moult init --product org.example.test --key a.pub --feed public/feed.json -q")
        let isOver = Mutex(false)
        let bench = bench
        let faults = Mutex<[String]>([])
        let reader = try Threads.start {
            while !isOver.withLock({ $0 }) {
                do {
                    let ended = try bench.run("moult check -q")
                    if ended.status != 2 { faults.withLock { $0.append("\(ended.status): \(ended.errors)") } }
                } catch { faults.withLock { $0.append("\(error)") } }
            }
        }
        for number in 2...7 {
            try bench.release("\(number).0.0", sequence: number * 10)
            try bench.must("moult publish public rel/test-\(number).0.0.json -k a.key -q")
        }
        isOver.withLock { $0 = true }
        reader.wait()
        #expect(faults.withLock { $0 } == [])
        // Of the signatures with a digest in their names, only those of the last two feeds are left.
        let names = try Files.list(bench.path("public")).filter { $0.hasPrefix("feed.json.") && $0.utf8.count > 20 }
        #expect(names.count == 2)
    }
}
