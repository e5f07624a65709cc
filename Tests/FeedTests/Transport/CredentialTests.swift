import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Passwords in `~/.netrc` are sent only to their host, and only over TLS.
@Suite struct CredentialTests {
    private let scratch: Scratch
    private let authority: Authority
    private let certificate: String

    /// "moult:feather" in the encoding of HTTP.
    private let password = "Basic bW91bHQ6ZmVhdGhlcg=="

    init() throws {
        scratch = try Scratch()
        authority = try Authority(in: scratch.path("ca"))
        certificate = try authority.certify("IP:127.0.0.1", as: "server")
        try scratch.directory("public")
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        _ = try maker.make("1.0.0", sequence: 1, [.reference("food", World.table("food", "1.0.0"))])
        try must("moult keygen a --no-password -q && moult publish public rel/test-1.0.0.json -k a.key -q")
    }

    /// Runs a command as a user with a netrc file that has a password for every host.
    private func run(_ line: String) throws -> Shell.Ended { try scratch.run(line, environment: environment()) }
    private func must(_ line: String) throws { try scratch.must(line, environment: environment()) }

    private func environment() throws -> [String: String] {
        let home = try scratch.directory("home")
        try Files.replace("\(home)/.netrc", with: Array("default login moult password feather\n".utf8), mode: 0o600)
        return ["HOME": home, "CURL_CA_BUNDLE": authority.certificate]
    }

    private func follow(_ url: String) throws {
        try must("moult init -q --product org.example.test --key a.pub --feed \(url)")
    }

    private func credentials(at server: ScriptedServer) throws -> Set<String> {
        let requests = try server.requests()
        #expect(!requests.isEmpty)
        return Set(requests.map(\.authorization))
    }

    @Test func `a password is sent to its host over TLS`() throws {
        let server = try ScriptedServer(scratch.path("public"), certificate: certificate)
        try follow(server.url("feed.json"))
        try must("moult apply -q")
        #expect(try credentials(at: server) == [password])
    }

    /// The group or other users could read the passwords, or change their destination.
    @Test(arguments: ["644", "640", "620"]) func `a netrc file that other users may read is not used`(mode: String)
        throws
    {
        let server = try ScriptedServer(scratch.path("public"), certificate: certificate)
        try follow(server.url("feed.json"))
        let environment = try environment()
        try scratch.must("chmod \(mode) home/.netrc && moult apply -q", environment: environment)
        #expect(try credentials(at: server) == [""])
    }

    @Test func `the error for a missing password says that other users can read the netrc file`() throws {
        let server = try ScriptedServer(scratch.path("public"), .wantsPassword, certificate: certificate)
        try follow(server.url("feed.json"))
        try must("moult apply -q")
        let environment = try environment()
        let refused = try scratch.run("chmod 644 home/.netrc; moult check", environment: environment)
        #expect(refused.status == 1)
        #expect(
            refused.errors.contains(
                "Other users can read ~/.netrc, so it was not used. Protect it: chmod 600 ~/.netrc"))
        #expect(!refused.errors.contains("feather"))
    }

    @Test func `no password is sent over plain HTTP`() throws {
        let server = try ScriptedServer(scratch.path("public"))
        try follow(server.url("feed.json"))
        try must("moult apply -q")
        #expect(try credentials(at: server) == [""])
    }

    @Test func `a password is not sent to the host of a redirect`() throws {
        let storage = try ScriptedServer(scratch.path("public"), certificate: certificate)
        let server = try ScriptedServer(
            scratch.path("public"), .redirect(to: storage.url("").dropLast().description), certificate: certificate)
        try follow(server.url("feed.json"))
        try must("moult apply -q")
        #expect(try credentials(at: server) == [password])
        #expect(try credentials(at: storage) == [""])
    }

    @Test func `a redirect to a URL with a password is refused`() throws {
        let storage = try ScriptedServer(scratch.path("public"), certificate: certificate)
        let server = try ScriptedServer(
            scratch.path("public"), .redirect(to: "https://other:secret@127.0.0.1:\(storage.port)"),
            certificate: certificate)
        try follow(server.url("feed.json"))
        let ended = try run("moult check")
        #expect(ended.status == 3)
        #expect(
            ended.errors == """
                moult: error: \(server.url("feed.json")) redirects to an address that moult refuses: the redirect contains a password
                  If you trust the target, use its address directly.

                """)
        #expect(try storage.requests() == [])
    }

    /// The message must not suggest configuring a password, because moult would not send it.
    @Test func `the error names a server that requests a password over plain HTTP`() throws {
        let server = try WebServer(scratch.path("public"))
        try follow(server.url("private/feed.json"))
        let ended = try run("moult check")
        #expect(ended.status == 1)
        #expect(
            ended.errors == """
                moult: error: cannot get \(server.url("private/feed.json")): the server replied with status 401 (not authorized)
                  Use HTTPS: moult sends no password over plain HTTP.

                """)
    }
}
