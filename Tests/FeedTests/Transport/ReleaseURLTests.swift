import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult apply URL` installs a release or follows a feed, depending on the content of the URL.
@Suite struct ReleaseURLTests {
    private let scratch: Scratch
    private let server: WebServer
    private let maker: ReleaseMaker
    private let first: String

    init() throws {
        scratch = try Scratch()
        try scratch.directory("public")
        server = try WebServer(scratch.path("public"))
        maker = try ReleaseMaker(in: scratch.path("public"))
        first = try maker.make("1.0.0", sequence: 1, [.reference("food", "CREATE TABLE food(x)")])
        try scratch.must("moult keygen -q --no-password k && moult keygen -q --no-password other")
    }

    private func second() throws -> String {
        try maker.make("2.0.0", sequence: 2, [.reference("food", "CREATE TABLE food(x, y)")])
    }

    private var release: String { server.url("test-1.0.0.json") }
    private var feed: String { server.url("feed/feed.json") }

    /// Publishes a release to a feed in a separate directory.
    private func publish(_ manifest: String) throws {
        try scratch.must("moult publish -q public/feed \(manifest) -k k.key")
    }

    private func version(_ store: String = "store") throws -> String {
        let line = try scratch.must("moult status -s \(store)").prefix { $0 != "\n" }
        return String(line.trimmingPrefix("org.example.test").drop { ": ".contains($0) })
    }

    private func refused(_ line: String, _ status: Int32, _ why: String) throws {
        let before = try Tree(scratch.path, times: false, skipping: ["store/.moult/feed", "store/.moult/downloads"])
        let ended: Shell.Ended = try scratch.run(line)
        #expect(ended.status == status && ended.errors.contains(why), "\(line): \(ended)")
        let after = try Tree(scratch.path, times: false, skipping: ["store/.moult/feed", "store/.moult/downloads"])
        #expect(after == before, "\(line)")
    }

    @Test func `a signed release can be installed by its URL into a new store`() throws {
        try scratch.must("moult sign -q \(first) -k k.key")
        let line = "moult apply --create --key k.pub -s store \(release)"
        for changes in [true, false] {
            #expect(try scratch.must(line).contains("nothing to do: 1.0.0 is installed") != changes)
            #expect(try version() == "1.0.0")
        }
        try scratch.must("moult sign -q \(second()) -k k.key")
        let next = server.url("test-2.0.0.json")
        let plan: Shell.Ended = try scratch.run("moult plan -s store \(next)")
        #expect(plan.status == 2 && plan.output.contains("from: \(next), "), "\(plan)")
        #expect(plan.output.contains("apply with: moult apply \(next) --store store"), "\(plan)")
        try scratch.must("moult apply -q -s store \(next)")
        #expect(try version() == "2.0.0")
        try refused("moult apply -s store \(release)", 3, "--allow-downgrade")
    }

    @Test func `a store that knows only the old key asks the server for newer key lists`() throws {
        try scratch.must(
            """
            moult sign -q \(first) -k other.key
            moult publish -q public/feed \(first) -k k.key -k other.key --trust other.pub
            """)
        let release = server.url("feed/test-1.0.0.json")
        // Without the key list, the other key is not trusted.
        try scratch.must("mkdir aside && mv public/feed/keys-1.json* aside")
        try refused("moult apply --create --key k.pub -s store \(release)", 3, "is not signed by a trusted key")
        try scratch.must("mv aside/* public/feed && moult apply -q --create --key k.pub -s store \(release)")
        #expect(try version() == "1.0.0")
        // The store keeps the key list.
        try scratch.must("rm public/feed/keys-1.json*; moult sign -q \(second()) -k other.key")
        try scratch.must("moult apply -q -s store \(server.url("test-2.0.0.json"))")
        try scratch.must("rm \(first).minisig && moult sign -q \(first) -k k.key")
        try refused("moult apply -s store --allow-downgrade \(self.release)", 3, "is not signed by a trusted key")
    }

    @Test func `a saved plan for a URL installs only the release in the plan`() throws {
        try scratch.must("moult sign -q \(first) -k k.key && moult init -q --product org.example.test --key k.pub")
        #expect(try scratch.run("moult plan -o p \(release)").status == 2)
        let saved = try scratch.text("p")
        try scratch.must("moult apply -q --plan p")
        #expect(try version() == "1.0.0")
        // The content of the URL must be the release in the plan.
        try scratch.must("moult init -q again --product org.example.test --key k.pub")
        #expect(saved.contains("\"url\": \"\(release)\""))
        #expect(try scratch.run("moult plan -s again -o q \(release)").status == 2)
        try Files.remove(first)
        _ = try maker.make("1.0.0", sequence: 1, [.reference("food", "CREATE TABLE food(other)")])
        try scratch.must("moult sign -q \(first) -k k.key")
        let ended: Shell.Ended = try scratch.run("moult apply --plan q")
        #expect(ended.status == 3 && ended.errors.contains("SHA-256"), "\(ended)")
        #expect(try version("again") == "nothing is installed")
    }

    @Test func `over the network, only signed files are accepted unless each command allows unsigned files`() throws {
        try refused("moult apply --create -s new \(release)", 3, "--allow-unsigned")
        try refused("moult apply --create --key k.pub -s new \(release)", 3, "is not signed")
        try scratch.must("moult sign -q \(first) -k other.key")
        try refused("moult apply --create --key k.pub -s new \(release)", 3, "")
        try scratch.must("moult apply -q --create --allow-unsigned -s new \(release)")
        #expect(try version("new") == "1.0.0")
        let next = try second()
        try refused("moult apply -s new \(server.url(Files.name(of: next)))", 3, "--allow-unsigned")
        try refused("moult plan -s new \(server.url(Files.name(of: next)))", 3, "--allow-unsigned")
        try scratch.must("moult apply -q -s new --allow-unsigned \(server.url(Files.name(of: next)))")
        #expect(try version("new") == "2.0.0")
        // The option is not needed for a file on this machine, and is refused.
        try refused("moult apply -s new --allow-unsigned \(next)", 64, "--allow-unsigned")
    }

    @Test
    func `a feed can be specified by its URL, file or directory, and a new store keeps following the feed`() throws {
        try publish(first)
        for (number, place) in [
            feed, "public/feed/feed.json", "public/feed", "file://\(scratch.path("public/feed/feed.json"))",
        ]
        .enumerated() {
            let store = "store\(number)"
            try refused("moult plan -s \(store) \(place)", 1, "moult.json")
            try scratch.must("moult apply -q --create --key k.pub -s \(store) \(place)")
            #expect(try version(store) == "1.0.0")
        }
        try publish(second())
        for number in 0..<4 {
            #expect(try scratch.run("moult check -q -s store\(number)").status == 2)
            try scratch.must("moult apply -q -s store\(number)")
            #expect(try version("store\(number)") == "2.0.0")
        }
        // A store with another feed, or without a feed, follows the given feed only this time.
        try scratch.must("moult init -q none --product org.example.test --key k.pub")
        let plan: Shell.Ended = try scratch.run("moult plan -s none \(feed)")
        #expect(plan.status == 2 && plan.output.contains("apply with: moult apply \(feed) --store none"), "\(plan)")
        try scratch.must("moult apply -q -s none \(feed)")
        #expect(try version("none") == "2.0.0")
        #expect(try scratch.run("moult check -s none").status == 64)
    }

    @Test func `a URL without a usable release or feed is refused with advice`() throws {
        try scratch.must(
            "moult init -q --product org.example.test --key k.pub && mkdir empty && echo '<html>' > public/x")
        try refused("moult apply \(server.url("none.json"))", 1, "no release at \(server.url("none.json"))")
        try refused("moult apply \(server.url("x"))", 3, "")
        try refused("moult apply empty", 1, "empty is a directory without a feed")
        try refused("moult apply ftp://example.org/x", 3, "Use a path, or a URL with file:, http:, https: or oci:.")
        try refused("moult apply http://127.0.0.1:\(Port.free())/x.json", 75, "")
        try refused("moult apply --feed \(feed) \(release)", 64, "--feed")
        try refused("moult apply https://user:secret@example.org/x", 3, "~/.netrc")
        try refused("moult plan --deep \(release) --allow-unsigned", 3, "")
    }

    @Test func `an interrupted download is resumed, and a missing patch does not matter`() throws {
        try scratch.must("moult sign -q \(first) -k k.key && moult apply -q --create --key k.pub -s store \(release)")
        try scratch.must("rm public/test-1.0.0.tar.zst")
        let next = try second()
        try scratch.must("moult sign -q \(next) -k k.key")
        let proxy = try FaultyProxy(before: server, .cut, times: 1, only: ".tar.zst")
        try scratch.must("moult apply -q -s store \(proxy.url("test-2.0.0.json"))")
        #expect(try version() == "2.0.0")
        #expect(try proxy.requests().count { $0.path.hasSuffix(".tar.zst") } == 2)
    }
}
