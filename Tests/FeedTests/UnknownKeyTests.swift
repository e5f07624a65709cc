import MoultFiles
import TestSupport
import Testing

/// Without a key list, stores trust the keys that signed the previous feed, so `publish` requires one of them.
@Suite struct UnknownKeyTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        for name in ["a", "b"] { try bench.key(name) }
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult publish public rel/test-1.0.0.json -k a.key -q")
    }

    @Test func `publish refuses a key that did not sign the last feed`() throws {
        let before = try Tree(bench.path("public"), times: false)
        let (old, new) = (try bench.id("a"), try bench.id("b"))
        #expect(
            try bench.refusal("moult publish public -k b.key", status: 3) == """
                moult: error: public/feed.json was signed with key \(old), and not with \(new): stores that trust \(old) \
                would refuse the feed
                  Use that key with --key FILE. To replace it, sign with both: moult publish public --trust NEW.pub --key \
                OLD.key --key NEW.key

                """)
        #expect(try Tree(bench.path("public"), times: false) == before)
    }

    @Test func `a store follows a change of keys that the old and the new key have signed`() throws {
        try bench.must(
            "moult init -q store --product org.example.test --key a.pub && moult apply -q --store store public")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish -q public rel/test-2.0.0.json --trust b.pub -k a.key -k b.key")
        try bench.must("moult apply -q --store store public/feed.json")
        try bench.must("moult publish -q public -k b.key")
        try bench.must("moult apply -q --store store public/feed.json")
    }

    @Test func `one of several keys that signed the last feed is enough to sign the next`() throws {
        try bench.must("moult publish public -q -k a.key -k b.key && moult publish public -q -k b.key")
    }

    @Test func `a feed can be specified by its directory`() throws {
        try bench.must("moult init -q store --product org.example.test --key a.pub")
        try bench.must(
            #"sed -i '1a "feed": { "url": "../public" },' store/moult.json && moult apply -q --store store"#)
        try bench.must(
            "moult apply -q --store store --feed public && moult apply -q --store store --feed file://$PWD/public")
    }
}
