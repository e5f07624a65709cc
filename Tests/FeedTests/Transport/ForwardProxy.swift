import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// A proxy like those of companies, which fetches URLs or opens a tunnel to a server.
final class ForwardProxy {
    let port: Int
    private let scratch: Scratch
    private let program: Background

    init() throws {
        scratch = try Scratch()
        port = try Port.free()
        program = try Background(["python3", "-u", "-c", Self.script, "\(port)", scratch.path("log")])
        try program.wait { Port.answers(port) }
    }

    deinit { program.signal(SIGKILL) }

    var url: String { "http://127.0.0.1:\(port)" }

    /// The method and target of each request.
    var requests: [String] {
        get throws {
            let text = String(decoding: try Files.read(scratch.path("log"), limit: 1 << 20) ?? [], as: UTF8.self)
            return text.split(separator: "\n").map { String($0) }
        }
    }

    private static let script = """
        import http.server, select, socket, sys, urllib.error, urllib.request
        class Proxy(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"
            def log_message(self, *_): pass
            def note(self):
                with open(sys.argv[2], "a") as log: log.write(self.command + " " + self.path + "\\n")
            def do_GET(self):
                self.note()
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                try: answer = opener.open(self.path)
                except urllib.error.HTTPError as refusal: answer = refusal
                with answer:
                    self.send_response(answer.status)
                    for name in ("Content-Length", "ETag"):
                        if answer.headers[name]: self.send_header(name, answer.headers[name])
                    self.end_headers()
                    self.wfile.write(answer.read())
            def do_CONNECT(self):
                self.note()
                host, port = self.path.split(":")
                with socket.create_connection((host, int(port))) as there:
                    self.send_response(200)
                    self.end_headers()
                    ends = {self.connection: there, there: self.connection}
                    while True:
                        for end in select.select(list(ends), [], [])[0]:
                            block = end.recv(65536)
                            if not block: return
                            ends[end].sendall(block)
        http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Proxy).serve_forever()
        """
}
