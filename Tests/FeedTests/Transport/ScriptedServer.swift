import MoultBasics
import MoultLibc
import TestSupport

/// A web server that serves a directory, and misbehaves in one way. It records each request with its credentials.
final class ScriptedServer {
    let port: Int
    private let scratch: Scratch
    private let program: Background
    private let isSecure: Bool

    enum Behaviour {
        case none
        /// Sends files with this suffix at this many bytes per second.
        case drip(bytesPerSecond: Int, only: String)
        /// Sends endless header lines.
        case endlessHeader
        /// Responds to the first requests with 503 and this Retry-After.
        case retryAfter(String, times: Int)
        /// Redirects each request to the same path, with a prefix.
        case redirect(to: String)
        /// Responds to each request with 304.
        case notModified
        /// Responds to requests without credentials with 401.
        case wantsPassword
        /// Responds to each request with this status and body.
        case status(Int, body: String)

        fileprivate var words: [String] {
            switch self {
            case .none: ["none", "", ""]
            case .drip(let rate, let ending): ["drip", "\(rate)", ending]
            case .endlessHeader: ["header", "", ""]
            case .retryAfter(let seconds, let times): ["later", seconds, "\(times)"]
            case .redirect(let prefix): ["redirect", prefix, ""]
            case .notModified: ["same", "", ""]
            case .wantsPassword: ["password", "", ""]
            case .status(let status, let body): ["status", "\(status)", body]
            }
        }
    }

    /// Starts the server. With a certificate, given as a path without its extension, the server uses only TLS.
    init(_ directory: String, _ behaviour: Behaviour = .none, certificate: String? = nil) throws {
        isSecure = certificate != nil
        scratch = try Scratch()
        port = try Port.free()
        program = try Background(
            ["python3", "-u", "-c", Self.script, "\(port)", directory, scratch.path("log"), certificate ?? ""]
                + behaviour.words)
        try program.wait { Port.answers(port) }
    }

    deinit { program.signal(SIGKILL) }

    func url(_ name: String) -> String { "\(isSecure ? "https" : "http")://127.0.0.1:\(port)/\(name)" }

    struct Request: Equatable {
        let path: String
        /// The Authorization header; empty if the request has none.
        let authorization: String
        let cacheControl: String
    }

    func requests() throws -> [Request] {
        try scratch.requestLog().map { Request(path: $0[0], authorization: $0[1], cacheControl: $0[2]) }
    }

    private static let script = #"""
        import http.server, os, ssl, sys, threading, time
        port, directory, log, certificate, behaviour, first, second = sys.argv[1:8]
        lock, count = threading.Lock(), 0
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_GET(self):
                global count
                with lock:
                    count += 1
                    number = count
                    with open(log, "a") as f: f.write("\t".join([self.path] + [self.headers.get(name, "") for name in ("Authorization", "Cache-Control")]) + "\n")
                try: self.answer(number)
                except OSError: pass
            def answer(self, number):
                name = self.path.split("?")[0]
                if behaviour == "redirect":
                    self.send_response(302)
                    self.send_header("Location", first + self.path)
                    self.end_headers()
                    return
                if behaviour == "status":
                    self.send_response(int(first))
                    self.send_header("Content-Length", str(len(second.encode())))
                    self.end_headers()
                    self.wfile.write(second.encode())
                    return
                if behaviour == "same":
                    self.send_response(304)
                    self.end_headers()
                    return
                if behaviour == "password" and not self.headers.get("Authorization"):
                    self.send_response(401)
                    self.end_headers()
                    return
                if behaviour == "later" and number <= int(second):
                    self.send_response(503)
                    self.send_header("Retry-After", first)
                    self.end_headers()
                    return
                if behaviour == "header":
                    self.wfile.write(b"HTTP/1.0 200 OK\r\n")
                    while True: self.wfile.write(b"X-Filler: " + b"x" * 1000 + b"\r\n")
                path = directory + name
                if not os.path.isfile(path):
                    self.send_error(404)
                    return
                body = open(path, "rb").read()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if behaviour == "drip" and name.endswith(second):
                    for byte in range(len(body)):
                        self.wfile.write(body[byte:byte + 1])
                        self.wfile.flush()
                        time.sleep(1 / float(first))
                else: self.wfile.write(body)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
        server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate + ".pem", certificate + ".key")
            # Handshakes in the threads, so that a client that only connects does not block others.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.serve_forever()
        """#
}
