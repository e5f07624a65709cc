import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `publish` does not renew a feed whose files stores could not get, and reads nothing in it before its signature was verified.
@Suite struct RenewalTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.published((1...5).map { "\($0).0.0" })
    }

    private func refused(_ why: String) throws {
        let before = try Tree(bench.path("public"), times: false)
        #expect(
            try bench.refusal("moult publish public -k a.key", status: 3) == """
                moult: error: the feed in public cannot be renewed: \(why)
                  Restore them from a copy, or withdraw their releases with --withdraw. To find all problems: moult publish public --check

                """)
        #expect(try Tree(bench.path("public"), times: false) == before)
    }

    @Test func `a feed is not renewed if manifests are missing`() throws {
        try bench.must("rm public/test-[1-4].0.0.json")
        try refused(
            "it lists 4 files that are missing or have other content: test-1.0.0.json, test-2.0.0.json, test-3.0.0.json …"
        )
    }

    @Test(arguments: ["rm FILE", "truncate -s -1 FILE", "rm FILE; mkdir FILE"])
    func `a feed is not renewed if a bundle is missing or has another size`(line: String) throws {
        try bench.must(line.replacing("FILE", with: "public/test-2.0.0.tar.zst"))
        try refused("it lists test-2.0.0.tar.zst, which is missing or has other content")
    }

    @Test(arguments: ["test-2.0.0.json", "test-2.0.0.tar.zst"])
    func `a feed is not renewed if a file was changed since`(name: String) throws {
        let file = "public/\(name)"
        try bench.must(
            "touch -d '1 minute ago' public/feed.json; printf x | dd of=\(file) conv=notrunc bs=1 seek=99 status=none")
        try refused("it lists \(name), which is missing or has other content")
    }

    @Test func `a release without files can be withdrawn, and then the feed is renewed`() throws {
        try bench.must("rm public/test-2.0.0.json public/test-2.0.0.tar.zst")
        try bench.must(
            "moult publish public -q -k a.key --withdraw 2.0.0 --reason lost; moult publish public -q -k a.key")
        #expect(try bench.feed()["serial"]?.integer == 7)
    }

    /// The file is not JSON, so a parser would report that.
    @Test func `the signature of a feed is verified before the feed is parsed`() throws {
        try bench.must("echo '{' > public/feed.json")
        let refused = try bench.refusal("moult publish public -k a.key", status: 3)
        #expect(refused.contains("public/feed.json was changed after it was signed"), "\(refused)")
    }

    @Test func `a feed that only another key has signed is not parsed`() throws {
        try bench.key("b")
        try bench.must(
            "echo '{' > public/feed.json; rm public/feed.json*.minisig; moult sign -q public/feed.json -k b.key")
        let refused = try bench.refusal("moult publish public -k a.key", status: 3)
        #expect(refused.contains("public/feed.json was signed with key"), "\(refused)")
    }
}
