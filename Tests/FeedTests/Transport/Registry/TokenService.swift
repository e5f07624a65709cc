import MoultBasics
import MoultLibc
import TestSupport

/// A token service for `Registry`. Every client may pull from repositories whose names start with `public/`. The user
/// `moult` with the password `feather`, or with the identity token `nest`, may pull and push everywhere.
final class TokenService {
    let port: Int
    private let scratch: Scratch
    private let program: Background
    private let isSecure: Bool

    /// Starts the service. With a certificate, given as a path without its extension, the service uses TLS. Tokens
    /// expire after `lifetime` seconds.
    init(certificate: String? = nil, lifetime: Int = 300) throws {
        scratch = try Scratch()
        port = try Port.free()
        isSecure = certificate != nil
        try Shell.must(
            [
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "sign.key", "-out", "sign.pem",
                "-subj", "/CN=token service", "-days", "2",
            ], in: scratch.path)
        program = try Background([
            "python3", "-u", "-c", Self.script, "\(port)", scratch.path, "\(lifetime)", certificate ?? "",
        ])
        try program.wait { Port.answers(port) }
    }

    deinit { program.signal(SIGKILL) }

    var url: String { "\(isSecure ? "https" : "http")://127.0.0.1:\(port)/token" }
    var certificate: String { scratch.path("sign.pem") }

    struct Request: Equatable {
        let method: String
        /// The parameters of the request, sorted and decoded.
        let query: String
        let authorization: String
    }

    func requests() throws -> [Request] {
        try scratch.requestLog().map { Request(method: $0[0], query: $0[1], authorization: $0[2]) }
    }

    private static let script = #"""
        import base64, http.server, json, ssl, subprocess, sys, threading, time, urllib.parse
        port, directory, lifetime, certificate = sys.argv[1:5]
        lock = threading.Lock()
        der = subprocess.run(["openssl", "x509", "-in", directory + "/sign.pem", "-outform", "der"],
            stdout=subprocess.PIPE, check=True).stdout
        def web(data): return base64.urlsafe_b64encode(data).rstrip(b"=")
        def token(access, audience):
            head = {"alg": "RS256", "typ": "JWT", "x5c": [base64.b64encode(der).decode()]}
            # The registry accepts a token until a minute after its end.
            claims = {"iss": "moult-test", "aud": audience, "exp": int(time.time()) + int(lifetime) - 60, "access": access}
            text = web(json.dumps(head).encode()) + b"." + web(json.dumps(claims).encode())
            mark = subprocess.run(["openssl", "dgst", "-sha256", "-sign", directory + "/sign.key"], input=text,
                stdout=subprocess.PIPE, check=True).stdout
            return (text + b"." + web(mark)).decode()
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_GET(self): self.answer(self.path.partition("?")[2], "token")
            def do_POST(self):
                self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode(), "access_token")
            def answer(self, text, field):
                query = urllib.parse.parse_qs(text)
                said = self.headers.get("Authorization", "")
                with lock, open(directory + "/log", "a") as log:
                    words = "&".join(sorted("%s=%s" % (k, v) for k in query for v in query[k]))
                    log.write("%s\t%s\t%s\n" % (self.command, words, said))
                known = (said == "Basic " + base64.b64encode(b"moult:feather").decode()
                    or query.get("refresh_token") == ["nest"])
                if (said or "refresh_token" in query) and not known:
                    self.send_response(401); self.end_headers(); return
                access = []
                for scope in " ".join(query.get("scope", [])).split():
                    kind, name, actions = scope.split(":")
                    allowed = actions.split(",") if known else ["pull"] if name.startswith("public/") else []
                    access.append({"type": kind, "name": name, "actions": allowed})
                body = json.dumps({field: token(access, query["service"][0])}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
        server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate + ".pem", certificate + ".key")
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.serve_forever()
        """#
}
