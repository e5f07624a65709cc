import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Attacks from the network or a mirror. Each is refused and changes nothing.
@Suite struct AttackTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private var feed: String { bench.path("public/feed.json") }

    /// Expects that `apply`, `plan` and `check` report the same error, and do not change the store.
    private func refused(_ message: String, status: Int32 = 3) throws {
        let before = try Tree(bench.path("store"), times: false, skipping: [".moult/downloads"])
        for verb in ["apply", "plan", "check"] {
            let said = try bench.refusal("moult \(verb)", status: status)
                .replacing(/machine shows [-0-9TZ:]+/, with: "machine shows NOW")
            #expect(said == "moult: error: \(message)\n", "\(verb)")
        }
        #expect(try Tree(bench.path("store"), times: false, skipping: [".moult/downloads"]) == before)
    }

    @Test func `a feed with arbitrary content is refused`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("echo '{}' > public/feed.json")
        try refused(
            """
            the signature of \(feed) is not valid: the file does not match the signature of key \(try bench.id("a"))
              Get the file and its signature again; if the error remains, report it to the publisher and do not use the file.
            """)
    }

    @Test func `an unsigned feed is refused`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("rm public/*.minisig")
        try refused(
            """
            \(feed) is not signed: this store accepts only files signed by a trusted key, and \
            \(feed).minisig does not exist; the trusted key is \(try bench.id("a"))
              Get the signature from the publisher, and put it next to the file.
            """)
    }

    @Test func `a feed signed by another key is refused`() throws {
        try bench.follow(["1.0.0"])
        try bench.key("b")
        try bench.replaceFeed(by: "b") { $0 }
        try refused(
            """
            \(feed) is not signed by a trusted key: its signature is by key \(try bench.id("b")); the trusted key is \
            \(try bench.id("a"))
              If that key is the publisher's, add it to the trusted keys.
            """)
    }

    private func olderFeed(_ store: String) throws {
        try bench.follow(["1.0.0", "2.0.0"])
        try bench.must("cp -r public old; moult apply -q; \(store)")
        try bench.release("3.0.0", sequence: 3)
        try bench.must("moult publish public rel/test-3.0.0.json -k a.key -q; moult apply -q; \(store)")
        try bench.must("rm -r public; mv old public")
        try refused(
            """
            \(feed) is older than a feed seen before: its serial is 2, and this store has seen serial 3
              An attacker may be withholding newer releases. If the publisher started the feed over, use --allow-downgrade.
            """)
    }

    @Test func `an older feed is refused`() throws { try olderFeed("true") }
    @Test func `an older feed is refused after the history was deleted`() throws {
        try olderFeed("rm store/.moult/history.jsonl")
    }
    @Test func `an older feed is refused after the records of the feed were deleted`() throws {
        try olderFeed("rm -r store/.moult/feed")
    }

    @Test func `a second feed with the same serial is refused`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        try bench.replaceRelease(0, "rollout", 50)
        try refused(
            """
            \(feed) differs from the feed seen before: both have serial 1, but each feed must have its own serial
              Report this to the publisher.
            """)
    }

    @Test func `an expired feed is refused`() throws {
        try bench.follow(["1.0.0"])
        try bench.replaceFeed { $0.setting("expires", to: "2026-01-01T00:00:00Z") }
        try refused(
            """
            \(feed) has expired: it was valid until 2026-01-01T00:00:00Z, and the clock of this machine shows NOW
              If the clock is right, an attacker may be withholding a newer feed: ask the publisher, or use another mirror.
            """)
    }

    /// A correctly signed manifest of the same publisher replaces that of another release.
    @Test func `a manifest of another release is refused`() throws {
        try bench.follow(["1.0.0", "2.0.0"])
        try bench.must(
            "cp public/test-1.0.0.json public/test-2.0.0.json; cp public/test-1.0.0.json.minisig public/test-2.0.0.json.minisig"
        )
        let message = """
            moult: error: \(bench.path("public/test-2.0.0.json")) is not the manifest listed in the feed: its size or \
            SHA-256 does not match
              Try again later, or report it to the publisher.

            """
        #expect(try bench.refusal("moult apply", status: 3) == message)
        #expect(try bench.refusal("moult plan", status: 3) == message)
    }

    @Test func `a bundle with different content is refused`() throws {
        try bench.follow(["1.0.0"])
        let size = try Files.facts(bench.path("public/test-1.0.0.tar.zst"))?.size ?? 0
        try bench.must("head -c \(size) /dev/urandom > public/test-1.0.0.tar.zst")
        #expect(try bench.run("moult apply").status == 1)
        #expect(try Files.list(bench.path("store")) == [".moult", "moult.json"])
    }

    @Test func `a manifest or a feed that is too large is refused`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("cat public/test-1.0.0.json > m; head -c 3000000 /dev/zero >> public/test-1.0.0.json")
        #expect(try bench.run("moult apply").errors.contains("it is larger than"))
        try bench.must("mv m public/test-1.0.0.json; head -c 34000000 /dev/zero > public/feed.json")
        #expect(try bench.run("moult apply").errors.contains("it is larger than 32.0 MiB"))
        #expect(try Files.list(bench.path("store")) == [".moult", "moult.json"])
    }

    @Test func `a feed of another product is refused`() throws {
        try bench.follow(["1.0.0"])
        try bench.replaceFeed { $0.setting("product", to: "org.example.other") }
        try refused(
            """
            \(feed) is the feed of org.example.other: the store \(bench.path("store")) holds org.example.test
              Use the feed of that product in \(bench.path("store/moult.json")).
            """)
    }

    @Test func `a file name that leads out of the feed is refused`() throws {
        try bench.follow(["1.0.0"])
        try bench.replaceRelease(
            0, "manifest", ["file": "../secret.json", "size": 1, "sha256": .string(String(repeating: "0", count: 64))])
        try refused(
            """
            \(feed): releases[0].manifest.file "../secret.json" has a character other than A-Z, a-z, 0-9, '.', '_' and '-'
              Report this to the publisher.
            """)
    }
}
