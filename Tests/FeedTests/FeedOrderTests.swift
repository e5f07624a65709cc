import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// With a stolen key, an attacker cannot permanently damage the order of feeds or the key list.
@Suite struct FeedOrderTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.follow(["1.0.0"])
        for name in ["b", "c"] { try bench.key(name) }
    }

    private var feed: String { bench.path("public/feed.json") }

    private func refused(_ message: String) throws {
        let before = try Tree(bench.path("store"), times: false, skipping: [".moult/downloads"])
        for verb in ["apply", "plan", "check"] {
            #expect(try bench.refusal("moult \(verb)", status: 3) == "moult: error: \(message)\n", "\(verb)")
        }
        #expect(try Tree(bench.path("store"), times: false, skipping: [".moult/downloads"]) == before)
    }

    /// Signs the feed with another serial, as an attacker with the stolen key would do.
    private func steal(serial: Int64) throws { try bench.replaceFeed { $0.setting("serial", to: .integer(serial)) } }

    @Test(arguments: [Int64.max, 1 << 53])
    func `a serial of 2 to the power of 53 or more is refused`(serial: Int64) throws {
        try steal(serial: serial)
        try refused(
            """
            \(feed): serial must be less than 2^53, but is \(serial)
              Report this to the publisher.
            """)
    }

    @Test func `a serial more than a million above the last one is refused`() throws {
        try bench.must("moult apply -q")
        try steal(serial: 1_000_002)
        try refused(
            """
            \(feed) has serial 1000002: the last serial was 1, and the next may be at most 1000000 higher
              If the publisher chose this serial, a new key list can reset it: moult help keys
            """)
        try steal(serial: 1_000_001)
        try bench.must("moult check")
    }

    @Test func `a new store accepts no first serial above a million`() throws {
        try steal(serial: 1_000_001)
        try refused(
            """
            \(feed) has serial 1000001: this store has seen no feed, and the first serial may be at most 1000000
              If the publisher chose this serial, a new key list can reset it: moult help keys
            """)
    }

    /// The attacker's feed has the highest serial that stores have seen. With the next key list, the publisher's
    /// serials start again.
    @Test func `the next key list ends a fast-forward attack`() throws {
        try bench.must("moult apply -q; cp -r public mine")
        try steal(serial: 1_000_000)
        try bench.must("moult check; rm -r public; mv mine public")
        #expect(
            try bench.refusal("moult check", status: 3).contains(
                "its serial is 1, and this store has seen serial 1000000"))
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub --serial 3")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k b.key; moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        // Under the new key list, serials can only increase again.
        try bench.must(
            "cp -r public old; moult publish public -q -k b.key; moult check -q; rm -r public; mv old public")
        #expect(
            try bench.refusal("moult check", status: 3).contains("its serial is 4, and this store has seen serial 5"))
    }

    /// A key that is in both lists must not bring back a feed from before the newer list.
    @Test func `a feed that was signed under an older key list is refused`() throws {
        try bench.must("moult publish public -q -k a.key --trust a.pub --trust b.pub; moult apply -q; cp -r public old")
        try bench.must("moult publish public -q -k a.key --trust a.pub --trust c.pub; moult apply -q")
        try bench.must("cp old/feed.json* public")
        try refused(
            """
            \(feed) was signed under key list 1, which key list 2 has replaced
              An attacker may be withholding a newer feed: ask the publisher, or use another mirror.
            """)
    }

    // MARK: revoked keys

    /// Changes the keys, and then makes the mirror serve the files from before the change.
    private func revoke() throws {
        try bench.must("moult apply -q; cp -r public old")
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k b.key; moult apply -q")
        try bench.must("mv public new; mv old public")
    }

    @Test func `a revoked key stays revoked when .moult/feed is emptied`() throws {
        try revoke()
        try bench.must("rm -r store/.moult/feed/*")
        #expect(try bench.refusal("moult check", status: 3).contains("the trusted key is \(try bench.id("b"))\n"))
        try bench.must("rm -r public; mv new public; moult check")
    }

    @Test func `a revoked key stays revoked after a rollback`() throws {
        try revoke()
        try bench.must("moult rollback -q --reason test; rm -r store/.moult/feed/*")
        #expect(try bench.refusal("moult check", status: 3).contains("the trusted key is \(try bench.id("b"))\n"))
        try bench.release("3.0.0", sequence: 3)
        try bench.must("moult sign -q -k a.key rel/test-3.0.0.json")
        #expect(try bench.run("moult apply rel/test-3.0.0.json").status == 3)
    }

    /// The record of the installed release names the key list under which the release was installed.
    @Test func `a store that has lost its key lists refuses feeds until it has the newest one again`() throws {
        try revoke()
        try bench.must("rm -r store/.moult/feed store/.moult/keys")
        try refused(
            """
            the key list keys-1.json of org.example.test is missing: this store has installed releases under \
            that key list, and the list may revoke keys
              Get keys-1.json and its signatures from the publisher, and put them into \(bench.path("store/.moult/keys")).
            """)
        try bench.must("rm -r public; mv new public; moult check")
    }

    @Test func `key lists that an earlier version kept next to the feed are used`() throws {
        try revoke()
        try bench.must("mv store/.moult/keys/* store/.moult/feed; rmdir store/.moult/keys")
        #expect(try bench.refusal("moult check", status: 3).contains("the trusted key is \(try bench.id("b"))\n"))
        try bench.must("rm -r public; mv new public; rm public/keys-*; moult publish public -q -k b.key; moult check")
        #expect(try Files.list(bench.path("store/.moult/keys")).contains("keys-1.json"))
    }

    /// New key lists take effect even if the feed that was published with them is refused.
    @Test func `a revocation takes effect even if the feed with it is refused`() throws {
        try bench.must("moult apply -q; cp -r public old")
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub; cp old/feed.json* public")
        #expect(try bench.run("moult check").status == 3)
        try bench.must("rm -r public; mv old public")
        #expect(try bench.refusal("moult check", status: 3).contains("the trusted key is \(try bench.id("b"))\n"))
    }
}
