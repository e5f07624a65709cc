import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// Runs in front of a registry, and handles some requests as failing servers and attackers do.
final class RegistryProxy {
    let port: Int
    private let scratch: Scratch
    private let program: Background

    /// How a request is handled.
    enum Fault {
        /// Closes the connection; the registry does not see the request.
        case refuse
        /// Passes the request on, and closes the connection without a response.
        case loseAnswer
        /// Passes the request on, and never responds.
        case hang
        /// Never responds, and does not pass the request on.
        case ignore
        /// Sends only half of the body.
        case cut
        /// Sends this status, with an optional Retry-After.
        case status(Int, retryAfter: String = "")
        case redirect(to: String)
        /// Sends the body of this file.
        case replace(String)
        /// Sends an endless body.
        case endless
        /// Sends this many bytes of the body per second.
        case drip(Int)
        /// Passes the request on after a pause.
        case delay(seconds: Int)
        /// Sends a different value for a header field.
        case header(String, String)

        fileprivate var words: [String] {
            switch self {
            case .refuse: ["refuse"]
            case .loseAnswer: ["lose"]
            case .hang: ["hang"]
            case .ignore: ["ignore"]
            case .cut: ["cut"]
            case .status(let status, let retryAfter): ["status", "\(status)", retryAfter]
            case .redirect(let url): ["redirect", url]
            case .replace(let file): ["replace", file]
            case .endless: ["endless"]
            case .drip(let rate): ["drip", "\(rate)"]
            case .delay(let seconds): ["delay", "\(seconds)"]
            case .header(let name, let value): ["header", name, value]
            }
        }
    }

    init(before registry: Registry) throws {
        scratch = try Scratch()
        port = try Port.free()
        try Files.writeNew([], to: scratch.path("rule"))
        program = try Background([
            "python3", "-u", "-c", Self.script, "\(port)", "\(registry.port)", scratch.path(""),
        ])
        try program.wait { Port.answers(port) }
    }

    deinit { program.signal(SIGKILL) }

    func address(_ repository: String) -> String { "oci+http://127.0.0.1:\(port)/\(repository)" }

    /// Injects a fault into the requests whose line ("GET /v2/…") matches, after the first `skip` and into at most
    /// `times` of them.
    func inject(_ fault: Fault, at pattern: String, skip: Int = 0, times: Int = 1_000_000) throws {
        let line = ([pattern, "\(skip)", "\(times)"] + fault.words).joined(separator: "\t")
        try Files.replace(scratch.path("rule"), with: Array(line.utf8))
        try Files.remove(scratch.path("log"))
    }

    /// Passes all requests on to the registry.
    func heal() throws {
        try Files.replace(scratch.path("rule"), with: [])
        try Files.remove(scratch.path("log"))
    }

    struct Request: Equatable {
        /// The line of the request, such as `GET /v2/…`.
        let line: String
        let authorization: String
        let isFaulty: Bool
    }

    /// Returns the requests since the last call of `inject` or `heal`.
    func requests() throws -> [Request] {
        try scratch.requestLog().map { Request(line: $0[0], authorization: $0[1], isFaulty: $0[2] == "fault") }
    }

    private static let script = #"""
        import re, socket, sys, threading, time
        port, upstream, directory = sys.argv[1:4]
        lock, counts = threading.Lock(), {}
        def receive(s):
            data = b""
            while b"\r\n\r\n" not in data:
                part = s.recv(65536)
                if not part: return None, b""
                data += part
            head, rest = data.split(b"\r\n\r\n", 1)
            return head.decode("latin1"), rest
        def fault(line):
            text = open(directory + "/rule").read()
            if not text: return ["none"]
            pattern, skip, times, *words = text.split("\t")
            if not re.search(pattern, line): return ["none"]
            number = counts[text] = counts.get(text, 0) + 1
            return words if int(skip) < number <= int(skip) + int(times) else ["none"]
        def answer(client, status, fields, body=b""):
            head = "HTTP/1.1 %s X\r\nContent-Length: %d\r\nConnection: close\r\n" % (status, len(body))
            client.sendall((head + "".join(f + "\r\n" for f in fields) + "\r\n").encode() + body)
        def serve(client):
            head, body = receive(client)
            if head is None: return
            line = " ".join(head.split(" ")[:2])
            said = re.search(r"(?im)^authorization: *(.*?)\r?$", head)
            with lock:
                what = fault(line)
                with open(directory + "/log", "a") as log:
                    log.write("%s\t%s\t%s\n" % (line, said.group(1) if said else "", "" if what[0] == "none" else "fault"))
            size = re.search(r"(?im)^content-length: *(\d+)", head)
            while size and len(body) < int(size.group(1)):
                part = client.recv(1 << 20)
                if not part: return client.close()
                body += part
            if what[0] == "refuse": return client.close()
            if what[0] == "delay": time.sleep(int(what[1]))
            if what[0] == "ignore": time.sleep(600)
            if what[0] == "status":
                answer(client, what[1], ["Retry-After: " + what[2]] if what[2] else []); return client.close()
            if what[0] == "redirect":
                answer(client, 307, ["Location: " + what[1] + line.split(" ")[1]]); return client.close()
            if what[0] == "replace":
                answer(client, 200, [], open(what[1], "rb").read()); return client.close()
            if what[0] == "endless":
                client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                while True: client.sendall(bytes(1 << 16))
            server = socket.create_connection(("127.0.0.1", int(upstream)))
            head = re.sub(r"(?im)^connection:.*\r?\n", "", head)
            server.sendall((head + "\r\nConnection: close\r\n\r\n").encode("latin1") + body)
            reply, content = receive(server)
            while not line.startswith("HEAD"):
                part = server.recv(1 << 20)
                if not part: break
                content += part
            server.close()
            if what[0] == "hang": time.sleep(600)
            if what[0] == "lose": return client.close()
            if what[0] == "header":
                reply = re.sub(r"(?im)^%s:.*\r?\n" % re.escape(what[1]), "", reply + "\r\n")
                reply += "%s: %s" % (what[1], what[2])
            client.sendall((reply + "\r\n\r\n").encode("latin1"))
            if what[0] == "cut": content = content[:len(content) // 2]
            if what[0] == "drip":
                for byte in content:
                    client.sendall(bytes([byte])); time.sleep(1 / float(what[1]))
            else: client.sendall(content)
            client.close()
        def guarded(client):
            try: serve(client)
            except OSError: client.close()
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", int(port))); s.listen(64)
        while True:
            c, _ = s.accept()
            threading.Thread(target=guarded, args=(c,), daemon=True).start()
        """#
}
