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
