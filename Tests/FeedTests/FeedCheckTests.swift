import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult publish --check` reports what stores would refuse, and `--tidy` removes files that moult left over.
@Suite struct FeedCheckTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.follow(["1.0.0", "2.0.0"])
    }

    private func check(_ options: String = "--trust a.pub") throws -> Shell.Ended {
        try bench.run("moult publish public --check \(options)")
    }

    @Test func `publish --check finds no problem in a sound feed and changes nothing`() throws {
        let before = try Tree(bench.path("public"))
        let ended = try check()
        #expect(ended.status == 0 && ended.output.contains("public/feed.json  serial 2, 2 releases"), "\(ended.output)")
        #expect(try Tree(bench.path("public")) == before)
        #expect(try check("").output.contains("signatures were not checked"))
    }

    @Test(arguments: [
        ("rm public/test-2.0.0.tar.zst", "test-2.0.0.tar.zst: it is missing"),
        ("rm public/test-1.0.0.json", "test-1.0.0.json: it is missing"),
        ("printf x >> public/test-1.0.0.tar.zst", "test-1.0.0.tar.zst: it has "),
        (
            "python3 -c \"f = open('public/test-1.0.0.tar.zst', 'r+b'); f.seek(9); f.write(b'x')\"",
            "test-1.0.0.tar.zst: its SHA-256 does not match the feed"
        ),
        ("sed -i 's/\"serial\": 2/\"serial\": 3/' public/feed.json", "feed.json"),
        ("rm public/feed.json*.minisig", "is not signed"),
    ])
    func `publish --check reports a feed that a store would refuse`(damage: String, text: String) throws {
        try bench.must(damage)
        let ended = try check()
        #expect(ended.status == 1 && ended.output.contains(text), "\(ended.output)\(ended.errors)")
    }

    @Test func `publish --check shows the next step for each problem`() throws {
        let publish = "moult publish public"
        try bench.must("rm public/test-2.0.0.tar.zst; printf x >> public/test-1.0.0.tar.zst")
        let size = try Files.facts(bench.path("rel/test-1.0.0.tar.zst"))?.size ?? 0
        #expect(
            try check().output == """
                ✗ test-1.0.0.tar.zst: it has \(size + 1) bytes instead of \(size)
                  Restore the file from a copy, or remove it and publish the release again: \(publish) MANIFEST --key FILE
                ✗ test-2.0.0.tar.zst: it is missing
                  Restore the file from a copy, or publish the release again: \(publish) MANIFEST --key FILE

                """)
        try bench.must(
            "rm public/test-1.0.0.tar.zst; \(publish) rel/test-*.json -q --key a.key; \(publish) --check -q")
        // A manifest of the wrong size is a single problem.
        try bench.must("printf x >> public/test-1.0.0.json")
        #expect(try check().output.split(separator: "\n").filter { $0.hasPrefix("✗") }.count == 1)
        try bench.must("cp rel/test-1.0.0.json public")
        try bench.must("rm public/feed.json*.minisig")
        let json = try JSON(parsing: check("--trust a.pub --json").output, source: "check")
        #expect(
            json["faults"]?.array?.map { $0["now"]?.string } == [
                "Sign the feed again with a key that stores trust: \(publish) --key FILE"
            ])
        try bench.must("\(publish) --key a.key -q; cp -a public kept")
        // The advice depends on why stores refuse the feed.
        try bench.key("b")
        #expect(
            try check("--trust b.pub").output.hasSuffix(
                """

                  Sign the feed with its own key and with a key that stores trust: \(publish) --key OLD.key --key NEW.key

                """))
        try bench.must("\(publish) --key a.key --key b.key -q; \(publish) --check --trust b.pub -q")
        try bench.must("printf ' ' >> public/feed.json")
        #expect(
            try check().output.hasSuffix(
                "\n  Restore the feed and its signatures from a copy that you trust.\n"))
        try bench.must("rm -r public; mv kept public")
        try bench.replaceRelease(1, "sequence", 7)
        #expect(
            try check().output.hasSuffix(
                """
                : sequence is 2 in the manifest and 7 in the feed
                  If its files cannot be restored, withdraw the release: \(publish) --withdraw 2.0.0 --reason TEXT --key FILE

                """))
        try bench.must("\(publish) --withdraw 2.0.0 --reason TEXT --key a.key -q; \(publish) --check --trust a.pub -q")
    }

    @Test func `publish --check reports a feed signed by a different key`() throws {
        try bench.key("b")
        let ended = try check("--trust b.pub")
        let id = try bench.id("b")
        #expect(ended.status == 1 && ended.output.contains(id), "\(ended.output)")
    }

    @Test func `--tidy removes only files that moult left over`() throws {
        try bench.must("mkdir -p public/.moult-publish.0/ready; > public/.moult-publish.0/.moult-work")
        try bench.must("echo mine > public/notes.txt; echo x > public/.hidden")
        let found = try check()
        #expect(found.status == 0 && found.output.contains(".moult-publish.0: left over"), "\(found.output)")
        let tidied = try check("--tidy")
        #expect(tidied.status == 0 && tidied.output.contains("- .moult-publish.0\n"), "\(tidied.output)")
        #expect(try Files.facts(bench.path("public/.moult-publish.0")) == nil)
        #expect(try bench.must("cat public/notes.txt public/.hidden") == "mine\nx\n")
        #expect(tidied.output.contains("notes.txt: not part of the feed"))
        // The lock of the command itself is not listed.
        #expect(!tidied.output.contains(".moult-lock"), "\(tidied)")
    }

    @Test func `--tidy keeps the directory of a running command`() throws {
        try bench.must("mkdir public/.moult-pack.0; flock -n public/.moult-pack.0 moult publish public --check --tidy")
        #expect(try Files.facts(bench.path("public/.moult-pack.0")) != nil)
    }

    /// Any user can lock a directory that is public.
    @Test func `a lock on the public directory does not block a publisher`() throws {
        try bench.must("flock public moult publish public -q -k a.key")
        #expect(try Files.facts(bench.path("public/.moult-lock")) == nil)
        let text = try bench.refusal("flock public/.moult-lock moult publish public -k a.key", status: 75)
        #expect(text.contains("public is in use"), "\(text)")
    }

    @Test func `publish --check publishes nothing`() throws {
        #expect(try bench.run("moult publish public --check -k a.key").status == 64)
        #expect(try bench.run("moult publish public --tidy").status == 64)
        #expect(try bench.run("moult publish public rel/test-1.0.0.json --check").status == 64)
    }
}
