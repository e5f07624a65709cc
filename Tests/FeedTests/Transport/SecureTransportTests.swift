import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A feed behind TLS and behind proxies, which the environment variables of curl configure.
@Suite struct SecureTransportTests {
    private let scratch: Scratch
    private let authority: Authority
    private let server: WebServer

    init() throws {
        scratch = try Scratch()
        authority = try Authority(in: scratch.path("ca"))
        server = try WebServer(
            scratch.directory("public"), certificate: authority.certify("IP:127.0.0.1", as: "server"))
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        _ = try maker.make("1.0.0", sequence: 1, [.reference("food", World.table("food", "1.0.0"))])
        try must("moult keygen a --no-password -q && moult publish public rel/test-1.0.0.json -k a.key -q")
    }

    private func run(_ line: String, _ environment: [String: String] = [:]) throws -> Shell.Ended {
        try scratch.run(line, environment: environment)
    }

    private func must(_ line: String) throws { try scratch.must(line) }

    private func follow(_ url: String) throws {
        try must("moult init -q --product org.example.test --key a.pub --feed \(url)")
    }

    private var trusting: [String: String] { ["CURL_CA_BUNDLE": authority.certificate] }

    @Test(arguments: ["CURL_CA_BUNDLE", "SSL_CERT_FILE"])
    func `an environment variable can specify the certificate authority`(name: String) throws {
        try follow(server.url("feed.json"))
        let ended = try run("moult apply -q", [name: authority.certificate])
        #expect(ended.errors == "")
        #expect(ended.status == 0)
        #expect(try run("sqlite3 'file:store/food.db?immutable=1' 'SELECT count(*) FROM food'").output == "200\n")
    }

    /// If the server cannot be authenticated, no request is sent, and the command never reports that no newer release
    /// exists.
    @Test(arguments: ["unknown authority", "other authority", "other name"])
    func `servers with an untrusted certificate are refused`(who: String) throws {
        var server = server
        var environment = trusting
        switch who {
        case "unknown authority": environment = [:]
        case "other authority":
            environment["CURL_CA_BUNDLE"] = try Authority(in: scratch.path("other")).certificate
        default:
            server = try WebServer(
                scratch.path("public"), certificate: authority.certify("IP:127.0.0.2", as: "another"))
        }
        try follow(server.url("feed.json"))
        // The cached feed and the record of the attempt do not count as changes.
        let aside: Set = [".moult/feed", ".moult/downloads", ".moult/lock", ".moult/history.jsonl"]
        let before = try Tree(scratch.path("store"), times: false, skipping: aside)
        for verb in ["check", "plan", "apply"] {
            let ended = try run("moult \(verb)", environment)
            #expect(![0, 2].contains(ended.status), "\(verb)")
            #expect(
                ended.errors.hasPrefix("moult: error: cannot get \(server.url("feed.json")): SSL"), "\(ended.errors)")
        }
        #expect(try Tree(scratch.path("store"), times: false, skipping: aside) == before)
    }

    /// The error says that the certificate has expired, and the command never reports that no newer release exists.
    @Test func `an expired certificate is refused`() throws {
        let server = try WebServer(
            scratch.path("public"), certificate: authority.certify("IP:127.0.0.1", as: "expired", days: -1))
        try follow(server.url("feed.json"))
        for verb in ["check", "plan", "apply"] {
            let ended = try run("moult \(verb)", trusting)
            #expect(![0, 2].contains(ended.status), "\(verb)")
            #expect(
                ended.errors.hasPrefix(
                    "moult: error: cannot get \(server.url("feed.json")): SSL certificate problem: certificate has expired"
                ),
                "\(ended.errors)")
        }
        #expect(try Files.facts(scratch.path("store/food.db")) == nil)
    }

    @Test func `a redirect to plain http is refused`() throws {
        let plain = try WebServer(scratch.path("public"))
        let leading = try WebServer(
            scratch.path("public"), certificate: authority.certify("IP:127.0.0.1", as: "leading"),
            elsewhere: plain.url("feed.json"))
        try follow(leading.url("elsewhere"))
        let ended = try run("moult apply", trusting)
        #expect(ended.status == 3)
        #expect(ended.errors.hasPrefix("moult: error: \(leading.url("elsewhere")) redirects to another scheme: "))
    }

    // MARK: proxies

    @Test func `plain HTTP requests go through the proxy`() throws {
        let plain = try WebServer(scratch.path("public"))
        let proxy = try ForwardProxy()
        try follow(plain.url("feed.json"))
        #expect(try run("moult apply -q", ["http_proxy": proxy.url]).status == 0)
        let asked = try proxy.requests
        #expect(asked.first == "GET \(plain.url("feed.json"))")
        #expect(asked.contains("GET \(plain.url("test-1.0.0.tar.zst"))"))
    }

    @Test(arguments: ["https_proxy", "HTTPS_PROXY", "all_proxy"])
    func `TLS requests go through a tunnel`(name: String) throws {
        let proxy = try ForwardProxy()
        try follow(server.url("feed.json"))
        let ended = try run("moult apply -q", trusting.merging([name: proxy.url]) { $1 })
        #expect(ended.errors == "")
        #expect(try Set(proxy.requests) == ["CONNECT 127.0.0.1:\(server.port)"])
    }

    @Test(arguments: ["no_proxy", "NO_PROXY"])
    func `requests to excluded hosts do not use the proxy`(name: String) throws {
        let proxy = try ForwardProxy()
        try follow(server.url("feed.json"))
        let environment = ["https_proxy": proxy.url, name: "example.org,127.0.0.1"]
        #expect(try run("moult apply -q", trusting.merging(environment) { $1 }).status == 0)
        #expect(try proxy.requests == [])
    }

    @Test func `an unreachable proxy is an error`() throws {
        try follow(server.url("feed.json"))
        try must("sed -i 's/\"feed\": {/\"feed\": {\"patience\": 1,/' store/moult.json")
        let ended = try run("moult check", trusting.merging(["https_proxy": "http://127.0.0.1:\(Port.free())"]) { $1 })
        #expect(ended.status == 75)
        #expect(ended.errors.contains("the variable https_proxy names a proxy"), "\(ended)")
    }

    /// `~/.netrc` is not used for proxies.
    @Test func `a proxy that requires a password is named as such`() throws {
        let proxy = try ScriptedServer(scratch.path("public"), .status(407, body: ""))
        try follow("http://updates.example.org/feed.json")
        let ended = try run("moult apply", ["http_proxy": proxy.url("").dropLast().description])
        #expect(ended.status == 1 && ended.errors.contains("https_proxy=http://NAME:PASSWORD@HOST:PORT"), "\(ended)")
        #expect(!ended.errors.contains("netrc"), "\(ended)")
    }

    /// A hotel's network answers every request with its page.
    @Test func `a page in place of the feed is named as such, without blaming the publisher`() throws {
        let portal = try ScriptedServer(
            scratch.path("public"), .status(200, body: "\n<!DOCTYPE html><html><title>Welcome</title></html>"))
        try follow(portal.url("feed.json"))
        let ended = try run("moult apply")
        #expect(ended.status == 75 && ended.errors.contains("a network that asks for a login"), "\(ended)")
        #expect(!ended.errors.contains("publisher"), "\(ended)")
    }

    /// Otherwise a cache in between could answer with an old feed for days.
    @Test func `a request for a feed asks caches to ask the server`() throws {
        let plain = try ScriptedServer(scratch.path("public"))
        try follow(plain.url("feed.json"))
        #expect(try run("moult apply -q").status == 0)
        let requests = try plain.requests()
        #expect(requests.first { $0.path == "/feed.json" }?.cacheControl == "no-cache", "\(requests)")
    }
}
