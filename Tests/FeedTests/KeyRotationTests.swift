import MoultFiles
import TestSupport
import Testing

/// New keys become trusted through a key list that an old key has signed.
@Suite struct KeyRotationTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        for name in ["b", "c"] { try bench.key(name) }
    }

    private func publish(_ version: String, _ sequence: Int, _ options: String) throws {
        try bench.release(version, sequence: sequence)
        try bench.must("moult publish public rel/test-\(version).json -q \(options)")
    }

    @Test func `stores switch to the new key`() throws {
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub")
        #expect(try bench.must("moult apply").contains("no newer release"))
        // The release is signed only by the new key, and the store accepts it.
        try publish("2.0.0", 2, "-k b.key")
        #expect(try bench.must("moult apply").contains("signed by \(try bench.id("b"))"))
    }

    @Test(.tags(.thorough)) func `a replaced key cannot publish`() throws {
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub; cp -r public before")
        #expect(
            try bench.refusal("moult publish public -k a.key", status: 3)
                == """
                moult: error: key \(try bench.id("a")) is not trusted any more: keys-1.json has replaced it, and stores refuse its signatures
                  Use a key of the list with --key FILE: \(try bench.id("b"))

                """)
        // Once the change of keys is complete, the same command succeeds again, and the old key signs nothing.
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub")
        #expect(try Files.facts(bench.path("public/keys-2.json")) == nil)
        try bench.must("minisign -V -q -p b.pub -m public/feed.json; moult apply -q; diff before/keys-1.json public")
    }

    /// A store that was offline for a long time follows the key lists one after the other.
    @Test func `a store follows two key changes at once`() throws {
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub")
        try bench.must("moult publish public -q -k b.key -k c.key --trust c.pub")
        try publish("2.0.0", 2, "-k c.key")
        #expect(try bench.must("moult apply").contains("signed by \(try bench.id("c"))"))
        // The store keeps the key lists that it has accepted, so it does not need the published lists any more.
        try bench.must("rm public/keys-*")
        try publish("3.0.0", 3, "-k c.key")
        try bench.must("moult apply -q")
    }

    /// The key of the old feed is still in the new list, so its signature is valid.
    @Test func `a feed from before a key list stays refused once a newer one was seen`() throws {
        try publish("2.0.0", 2, "-k a.key")
        try bench.must(
            """
            cp -r public old; moult publish public -q --withdraw 2.0.0 --reason harmful -k a.key; moult check -q
            moult publish public -q -k a.key --trust a.pub --trust b.pub
            cp public/keys-1* old; mv public new; cp -r old public
            """)
        for verb in ["check", "apply"] {
            #expect(
                try bench.refusal("moult \(verb)", status: 3).contains(
                    "its serial is 2, and this store has seen serial 3"))
        }
        try bench.must("rm -r public; mv new public; moult check -q")
        try publish("3.0.0", 3, "-k b.key -k a.key")
        #expect(try bench.must("moult apply").contains("3.0.0"))
    }

    /// The feed names a key list that the mirror withholds at first.
    @Test func `a feed from before the last one stays refused when a withheld key list arrives`() throws {
        try bench.must("moult publish public -q -k a.key --trust a.pub --trust b.pub; moult check -q")
        try bench.must("moult publish public -q -k a.key --trust a.pub --trust b.pub --trust c.pub")
        try publish("2.0.0", 2, "-k a.key")
        try bench.must(
            """
            cp -r public old; moult publish public -q --withdraw 2.0.0 --reason harmful -k a.key
            mkdir lists; mv public/keys-2* lists; moult check -q; rm -r public; mv old public
            """)
        for verb in ["check", "apply"] {
            #expect(try bench.refusal("moult \(verb)", status: 3).contains("is older than a feed seen before"))
        }
    }

    @Test func `a key list without a signature by an old key changes nothing`() throws {
        try bench.must(
            """
            moult publish public -q -k a.key -k b.key --trust b.pub; rm public/keys-1.json*.minisig
            moult sign -q -k c.key public/keys-1.json
            """)
        try publish("2.0.0", 2, "-k b.key")
        #expect(try bench.refusal("moult apply", status: 3).contains("the trusted key is \(try bench.id("a"))\n"))
    }

    /// `publish` is killed at each rename: readers then find a feed that their keys can verify, with the old or the new
    /// keys.
    @Test(
        .tags(.thorough),
        arguments: ["--trust b.pub -k a.key -k b.key", "--trust keys/keys-1.json -k a.key -k b.key -k c.key"])
    func `a kill during a key change leaves a feed that stores accept`(options: String) throws {
        try bench.must(
            "moult trust keys -q --product org.example.test --root a.pub --release b.pub --timestamp c.pub -k a.key")
        try bench.must("cp -r public before; cp -r store known")
        var kills = 0
        for number in 1...40 {
            try bench.must("chmod -R u+w store; rm -rf public store; cp -r before public; cp -r known store")
            let ended = try bench.run(
                """
                strace -f -qq -o /dev/null -e trace=rename,renameat2 -e inject=rename,renameat2:signal=SIGKILL:when=\(number) \
                moult publish public -q \(options)
                """)
            try bench.must(
                "moult check -q; mkdir -p new; chmod -R u+w new; rm -rf new; moult init new --product org.example.test --key a.pub -q"
            )
            try bench.must("moult apply -q --store new --feed public/feed.json")
            if ended.status == 0 { break }
            kills += 1
            // Running the same command again completes the change of keys.
            try bench.must("moult publish public -q \(options); moult check -q")
        }
        #expect(kills > 6)
    }

    /// While the first feed with a key list is published, readers find either no feed or the complete feed.
    @Test(.tags(.thorough)) func `a kill while the first feed is published leaves no feed or a valid one`() throws {
        try bench.must(
            "moult trust keys -q --product org.example.test --root a.pub --release b.pub --timestamp c.pub -k a.key")
        var kills = 0
        for number in 1...40 {
            try bench.must(
                "mkdir -p new; chmod -R u+w new; rm -rf first new; moult init new --product org.example.test --key a.pub -q"
            )
            let ended = try bench.run(
                """
                strace -f -qq -o /dev/null -e trace=rename,renameat2 -e inject=rename,renameat2:signal=SIGKILL:when=\(number) \
                moult publish first rel/test-1.0.0.json -q --trust keys/keys-1.json -k b.key -k c.key
                """)
            if try Files.facts(bench.path("first/feed.json")) != nil {
                try bench.must("moult apply -q --store new --feed first/feed.json")
            }
            if ended.status == 0 { break }
            kills += 1
            try bench.must(
                "moult publish first rel/test-1.0.0.json -q --trust keys/keys-1.json -k b.key -k c.key || moult publish first -q -k c.key"
            )
            try bench.must("moult apply -q --store new --feed first/feed.json")
        }
        #expect(kills > 6)
    }

    @Test func `a key list of another product is refused`() throws {
        try bench.must("moult trust keys -q --product org.example.other --root a.pub --release b.pub -k a.key")
        #expect(
            try bench.refusal("moult publish public --trust keys/keys-1.json -k a.key -k b.key", status: 3)
                == "moult: error: keys/keys-1.json is a key list of org.example.other: the feed is for org.example.test\n"
                + "  Use the key list of that product.\n")
        try bench.must(
            "cp keys/keys-1.json* public; moult publish other -q rel/test-1.0.0.json -k a.key; cp other/feed.json* public"
        )
        #expect(
            try bench.refusal("moult check --allow-downgrade", status: 3)
                == "moult: error: keys-1.json is key list 1 of org.example.other: it must be key list 1 of org.example.test\n"
                + "  If \"product\" in the store's moult.json is wrong, correct it. Otherwise, report this to the publisher.\n"
        )
    }

    @Test func `the signature of a manifest on the command line is checked with the keys of the last key list`() throws
    {
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub; moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult sign -q -k a.key rel/test-2.0.0.json")
        #expect(try bench.run("moult apply rel/test-2.0.0.json").status == 3)
        try bench.must("rm rel/test-2.0.0.json.minisig; moult sign -q -k b.key rel/test-2.0.0.json")
        try bench.must("moult apply -q rel/test-2.0.0.json")
    }
}
