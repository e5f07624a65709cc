import MoultBasics
import MoultLibc
import TestSupport

/// Runs between a client and a web server, and damages responses as bad networks do.
final class FaultyProxy {
    let port: Int
    private let scratch: Scratch
    private let program: Background

    enum Fault: String {
        case none
        /// Closes the connection after a part of the body.
        case cut
        /// Sends a part of the body, and then nothing.
        case stall
        /// Sends a part of the body, and claims that this is all.
        case truncate
        case corrupt
        /// Claims that the body is longer than it is.
        case long
        /// Sends more bytes than announced.
        case endless
        /// Resumes a transfer at a wrong offset.
        case misplace
        case refuse
        /// Answers only GET, as for a signed URL.
        case onlyGet
    }

    /// Starts a proxy that damages the responses to the first requests whose path ends with a text. `at` is the part of the
    /// body that is sent before the fault.
    init(
        before server: WebServer, _ fault: Fault = .none, at share: Double = 0.5, times: Int = 1,
        only ending: String = ""
    ) throws {
        scratch = try Scratch()
        port = try Port.free()
        program = try Background([
            "python3", "-u", "-c", Self.script, "\(port)", "\(server.port)", scratch.path("log"), fault.rawValue,
            "\(share)", "\(times)", ending,
        ])
        try program.wait { Port.answers(port) }
    }

    deinit { program.signal(SIGKILL) }

    func url(_ name: String) -> String { "http://127.0.0.1:\(port)/\(name)" }

    struct Request: Equatable {
        let path: String
        let range: String
        let status: Int
        /// The number of bytes of the body that were sent.
        let bytes: Int
    }

    /// Returns the requests, in order.
    func requests() throws -> [Request] {
        try scratch.requestLog().map {
            Request(path: $0[0], range: $0[1], status: Int($0[2]) ?? 0, bytes: Int($0[3]) ?? 0)
        }
    }

    private static let script = #"""
        import socket, sys, threading, time, re
        port, upstream, log, fault, share, times, ending = sys.argv[1:8]
        share, times = float(share), int(times)
        lock = threading.Lock()
        def head_of(s):
            data = b""
            while b"\r\n\r\n" not in data:
                part = s.recv(65536)
                if not part: return None, b""
                data += part
            head, rest = data.split(b"\r\n\r\n", 1)
            return head.decode("latin1"), rest
        def spoil(path):
            global times
            with lock:
                if fault in ("none", "onlyGet") or times <= 0 or not path.endswith(ending): return "none"
                times -= 1
                return fault
        def note(path, asked, status, size):
            # Before any of it goes out, the head too: an answer without a body, as 304, is over with its head.
            with lock:
                with open(log, "a") as f: f.write("%s\t%s\t%d\t%d\n" % (path, asked.group(1) if asked else "", status, size))
        def serve(client):
            head, _ = head_of(client)
            if head is None: return
            path = head.split(" ")[1]
            if fault == "onlyGet" and head.startswith("HEAD"):
                client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"); client.close(); return
            asked = re.search(r"(?im)^range: *(.*?)\r?$", head)
            what = spoil(path)
            if what == "refuse":
                client.close(); return
            if what == "misplace" and asked:
                head = head.replace(asked.group(1), "bytes=1-")
            server = socket.create_connection(("127.0.0.1", int(upstream)))
            head = re.sub(r"(?im)^connection:.*\r?\n", "", head)
            server.sendall((head + "\r\nConnection: close\r\n\r\n").encode("latin1"))
            answer, body = head_of(server)
            while True:
                part = server.recv(1 << 20)
                if not part: break
                body += part
            status = int(answer.split(" ")[1])
            keep = int(len(body) * share)
            length = len(body)
            if what == "truncate": length = keep
            if what == "long": length += 1000
            if what == "endless": answer = re.sub(r"(?im)^content-length:.*\r?\n", "", answer + "\r\n").rstrip()
            elif not head.startswith("HEAD"): answer = re.sub(r"(?im)^(content-length: *).*$", lambda m: m.group(1) + str(length), answer)
            if what == "corrupt": body = body[:keep] + bytes([body[keep] ^ 1]) + body[keep + 1:]
            try:
                if what in ("cut", "stall", "truncate"): body = body[:keep]
                if what == "endless": body = body + bytes(1 << 22)
                note(path, asked, status, len(body))
                client.sendall((answer + "\r\n\r\n").encode("latin1"))
                client.sendall(body)
                if what == "stall": time.sleep(600)
            except OSError: pass
            client.close(); server.close()
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", int(port))); s.listen(64)
        while True:
            c, _ = s.accept()
            threading.Thread(target=serve, args=(c,), daemon=True).start()
        """#
}
