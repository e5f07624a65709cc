import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A hostile registry names a scope that reaches further than the request.
@Suite struct RegistryScopeTests {
    private let scratch: Scratch
    init() throws {
        scratch = try Scratch()
        try scratch.directory("home")
        try scratch.directory("home/.docker")
    }

    @Test(arguments: [
        "repository:team/food:pull,push", "repository:team/food:*",
        "repository:other:pull,push,delete repository:team/food:pull",
        "registry:catalog:*", "",
    ])
    func `a reader asks only for the right to pull from its repository`(scope: String) throws {
        let port = try Port.free()
        let registry = try Background(["python3", "-u", "-c", Self.script, "\(port)", scratch.path("log"), scope])
        defer { registry.signal(SIGKILL) }
        try registry.wait { Port.answers(port) }
        // "moult:feather"
        let login = "{\"auths\": {\"127.0.0.1:\(port)\": {\"auth\": \"bW91bHQ6ZmVhdGhlcg==\"}}}"
        try Files.replace(scratch.path("home/.docker/config.json"), with: Array(login.utf8), mode: 0o600)
        let place = "oci+http://127.0.0.1:\(port)/team/food"
        try scratch.must("moult init -q store --product org.example.test")
        _ = try scratch.run(
            "moult apply --store store --feed \(place) --allow-unsigned", environment: ["HOME": scratch.path("home")])
        let asked = Set(try scratch.text("log").split(separator: "\n").map { String($0) })
        #expect(asked == ["repository:team/food:pull Basic bW91bHQ6ZmVhdGhlcg=="])
    }

    private static let script = #"""
        import http.server, sys, urllib.parse
        port, log, scope = sys.argv[1:4]
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_HEAD(self): self.do_GET()
            def do_GET(self):
                said, body = self.headers.get("Authorization", ""), b""
                if self.path.startswith("/token"):
                    query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
                    with open(log, "a") as f: f.write(" ".join(query.get("scope", [])) + " " + said + "\n")
                    body = b'{"token": "t"}'
                    self.send_response(200)
                elif said: self.send_response(404)
                else:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate",
                        'Bearer realm="http://127.0.0.1:%s/token",service="s",scope="%s"' % (port, scope))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET": self.wfile.write(body)
        http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
        """#
}
