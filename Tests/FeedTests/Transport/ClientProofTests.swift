import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A server that requires a client certificate and a token, which the settings name by file, and the reports to it.
@Suite struct ClientProofTests {
    private let scratch: Scratch
    private let authority: Authority
    private let server: WebServer

    init() throws {
        scratch = try Scratch()
        authority = try Authority(in: scratch.path("ca"))
        server = try WebServer(
            scratch.directory("public"), certificate: authority.certify("IP:127.0.0.1", as: "server"),
            requiring: """
                ssl_client_certificate \(authority.certificate); ssl_verify_client on;
                if ($http_authorization != "Bearer feather") { return 403; }
                """)
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        _ = try maker.make("1.0.0", sequence: 1, [.reference("food", World.table("food", "1.0.0"))])
        try scratch.must("moult keygen a --no-password -q && moult publish public rel/test-1.0.0.json -k a.key -q")
        try scratch.must("moult init -q --product org.example.test --key a.pub --feed \(server.url("feed.json"))")
        _ = try authority.certify("IP:127.0.0.9", as: "client")
        try scratch.write("headers", Array("Authorization: Bearer feather\n".utf8))
        try scratch.must("chmod 600 headers ca/client.key; chmod 644 ca/client.pem")
    }

    private func run(_ line: String) throws -> Shell.Ended {
        try scratch.run(line, environment: ["CURL_CA_BUNDLE": authority.certificate])
    }

    private func set(_ more: String) throws {
        try scratch.must(
            """
            python3 - <<'E'
            import json
            settings = json.load(open("store/moult.json"))
            for name in ("certificate", "key", "headers"): settings["feed"].pop(name, None)
            settings["feed"].update(\(more))
            json.dump(settings, open("store/moult.json", "w"))
            E
            """)
    }

    private var certificate: String { #""certificate": "\#(scratch.path("ca/client.pem"))""# }
    private var key: String { #""key": "\#(scratch.path("ca/client.key"))""# }
    private var headers: String { #""headers": "\#(scratch.path("headers"))""# }

    @Test func `a feed behind client certificates and a token is followed with the files in the settings`() throws {
        let refused = try run("moult apply")
        #expect(refused.status == 1 && refused.errors.contains("status 400"), "\(refused)")
        #expect(refused.errors.contains(#""certificate" under "feed" in moult.json"#))
        try set("{\(certificate), \(key)}")
        #expect(try run("moult apply").errors.contains("status 403"))
        try set("{\(certificate), \(key), \(headers)}")
        let done = try run("moult apply -q")
        #expect(done.status == 0 && done.errors.isEmpty, "\(done)")
        // The key may be in the file of the certificate.
        try scratch.must("cat ca/client.key >> ca/client.pem; chmod 600 ca/client.pem")
        try set("{\(certificate), \(headers)}")
        #expect(try run("moult check -q").status == 0)
        // Neither the key nor the token is in a file of moult or a message.
        #expect(try run("grep -r -e feather -e PRIVATE store").status == 1)
        #expect(try !run("moult status --json").output.contains("feather"))
    }

    @Test func `a key or a token that other users can read is not used`() throws {
        try scratch.must("chmod 644 headers")
        try set("{\(certificate), \(key), \(headers)}")
        let path = scratch.path("headers")
        #expect(
            try run("moult apply").errors
                == "moult: error: cannot use \(path): other users can read or change it\n  Protect it: chmod 600 \(path)\n"
        )
        try scratch.must("chmod 600 headers; chmod 640 ca/client.key")
        #expect(try run("moult apply").errors.contains("cannot use \(scratch.path("ca/client.key"))"))
        try scratch.must("chmod 600 ca/client.key; echo none > headers")
        #expect(try run("moult apply").errors.contains("a line is not of the form NAME: VALUE"))
    }

    /// A redirect to another host, and a server without TLS, get neither the certificate nor the headers.
    @Test func `only the hosts of the feed get the token`() throws {
        let other = try ScriptedServer(
            scratch.path("public"), certificate: authority.certify("IP:127.0.0.1", as: "other"))
        let leading = try WebServer(
            scratch.path("public"), certificate: authority.certify("IP:127.0.0.1", as: "leading"),
            elsewhere: other.url("feed.json"))
        try set(#"{"url": "\#(leading.url("elsewhere"))", \#(headers)}"#)
        _ = try run("moult check")
        let plain = try ScriptedServer(scratch.path("public"))
        try set(#"{"url": "\#(plain.url("feed.json"))", \#(headers)}"#)
        _ = try run("moult check")
        for server in [other, plain] {
            let requests = try server.requests()
            #expect(!requests.isEmpty && requests.allSatisfy { $0.authorization.isEmpty }, "\(requests)")
        }
        try set(#"{"url": "\#(other.url("feed.json"))", \#(headers)}"#)
        _ = try run("moult check")
        #expect(try other.requests().last?.authorization == "Bearer feather")
    }

    @Test func `each attempt is reported once, and a server that refuses or does not answer changes nothing`() throws {
        let port = try Port.free()
        let script = """
            import http.server, sys, time
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *_): pass
                def do_POST(self):
                    body = self.rfile.read(int(self.headers["Content-Length"]))
                    with open(sys.argv[2], "ab") as f: f.write(body + b"\\n")
                    if self.path == "/never": time.sleep(60)
                    self.send_response(500 if self.path.startswith("/wrong") else 204); self.end_headers()
            http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
            """
        let program = try Background(["python3", "-c", script, "\(port)", scratch.path("reports")])
        defer { program.signal(SIGKILL) }
        try program.wait { Port.answers(port) }
        func reports() throws -> [JSON] {
            let lines = try Files.read(scratch.path("reports"), limit: 1 << 20) ?? []
            return try lines.split(separator: 10).map { try JSON(parsing: Array($0), source: "report") }
        }
        func report(to path: String) throws {
            try scratch.must(
                """
                python3 - <<'E'
                import json
                settings = json.load(open("store/moult.json"))
                settings["report"] = "http://127.0.0.1:\(port)/\(path)"
                json.dump(settings, open("store/moult.json", "w"))
                E
                """)
        }
        try set("{\(certificate), \(key), \(headers)}")
        try report(to: "moult?token=bread")
        let done = try run("moult apply -q")
        #expect(done.status == 0 && done.errors.isEmpty, "\(done)")
        var all = try reports()
        #expect(all.count == 1)
        #expect(all[0]["product"]?.string == "org.example.test" && all[0]["store"]?.string == scratch.path("store"))
        #expect(all[0]["attempt"]?["installed"]?.string == "1.0.0" && all[0]["attempt"]?["failures"]?.integer == 0)
        // A failed attempt is reported, too.
        try scratch.must("mv ca/client.key ca/client.key.aside")
        #expect(try run("moult apply -q").status == 1)
        all = try reports()
        #expect(all.count == 2 && all[1]["attempt"]?["code"]?.string == "E275", "\(all)")
        try scratch.must("mv ca/client.key.aside ca/client.key")
        for (path, why) in [("wrong?token=bread", "status 500"), ("never", "")] {
            try report(to: path)
            let start = ContinuousClock.now
            let ended = try run("moult apply -q")
            #expect(
                ended.status == 0 && ended.errors.hasPrefix("moult: warning: the report of this attempt was not sent: ")
            )
            #expect(ended.errors.contains(why) && !ended.errors.contains("bread"), "\(ended.errors)")
            #expect(ContinuousClock.now - start < .seconds(20))
        }
        #expect(try reports().count == 4)
    }
}
