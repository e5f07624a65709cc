import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A server on the internet cannot send requests on to this machine or its network. The servers are in a network namespace, in which
/// 203.0.113.7 and 203.0.113.8 are addresses on the internet.
@Suite(.enabled(if: NetworkNamespace.isAvailable, "network namespaces need root")) struct ReachTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    /// Each word is a host; the server on the first one redirects to the second one, and so on. Returns, for each line, whether the
    /// last server was reached, or the error.
    private func run(_ lines: [String], environment: String = "") throws -> [String] {
        try scratch.write("server.py", Self.script)
        try scratch.write(
            "hosts",
            "127.0.0.1 localhost inner.example\n203.0.113.7 feed.example\n203.0.113.8 other.example\n10.9.8.7 proxy.example\n"
        )
        try scratch.write("lines", lines.joined(separator: "\n"))
        try scratch.must("test -e store || moult init -q store --product org.example.test")
        let output = try scratch.must(
            """
            export HOME=$PWD; \(environment) unshare -nm sh -ec '
                mount --bind hosts /etc/hosts; ip link set lo up
                for one in 203.0.113.7 203.0.113.8 10.9.8.7 169.254.9.9; do ip addr add $one/32 dev lo; done
                exec python3 -u server.py <lines'
            """)
        return output.split(separator: "\n").map { String($0) }
    }

    @Test(arguments: [
        "127.0.0.1", "localhost", "inner.example", "[::1]", "0.0.0.0", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]",
        "10.9.8.7",
        "169.254.9.9", "proxy.example", "[::]", "a.localhost",
    ])
    func `a public server cannot redirect to a local address`(host: String) throws {
        let found = try run(["203.0.113.7 \(host)", "feed.example \(host)", "203.0.113.7 203.0.113.8 \(host)"])
        #expect(found.count == 3)
        for line in found { #expect(line.hasPrefix("refused"), "\(line)") }
    }

    @Test func `other redirects are followed`() throws {
        let lines = [
            "203.0.113.7", "203.0.113.7 203.0.113.8", "feed.example other.example", "127.0.0.1 localhost",
            "10.9.8.7 127.0.0.1",
            "inner.example 203.0.113.7", "inner.example 10.9.8.7 [::1]",
        ]
        #expect(try run(lines) == lines.map { _ in "reached" })
    }

    @Test func `after a public server, a local feed cannot lead back either`() throws {
        #expect(try run(["127.0.0.1 203.0.113.7 127.0.0.1"])[0].hasPrefix("refused"))
    }

    /// The address of the proxy says nothing about that of the server.
    @Test func `behind a local proxy, a redirect to a local address is refused as well`() throws {
        let found = try run(
            ["203.0.113.7 203.0.113.8", "203.0.113.7 127.0.0.1", "203.0.113.7 localhost"],
            environment: "export http_proxy=http://10.9.8.7:8081;")
        #expect(found[0] == "reached" && found[1].hasPrefix("refused") && found[2].hasPrefix("refused"), "\(found)")
    }

    @Test func `the message names the address`() throws {
        let found = try run(["feed.example inner.example"])[0]
        #expect(
            found.hasSuffix(
                "redirects to an address that moult refuses: 127.0.0.1 is an address of this machine or its network, and the server is not"
            ), "\(found)")
    }

    /// An address is checked when a connection opens, and connections stay open for later requests.
    @Test func `a request that may not reach local addresses does not use the connection of one that may`() throws {
        try scratch.write("hosts", "127.0.0.1 localhost inner.example\n")
        try scratch.write(
            "run.py",
            #"""
            import http.server, json, subprocess, threading
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *_): pass
                def do_GET(self):
                    body = str(self.client_address[1]).encode()
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            request = {"url": "http://inner.example:8080/x", "offset": 0, "patience": 5, "minimumRate": 0, "deadline": 20, "bandwidth": 0}
            requests = [request, request, request | {"isPublicOnly": True}]
            lines = "".join(json.dumps(r) + "\n" for r in requests)
            print(subprocess.run(["moult-fetch"], input=lines, text=True, stdout=subprocess.PIPE).stdout)
            """#)
        let output = try scratch.must(
            "unshare -nm sh -ec 'mount --bind hosts /etc/hosts; ip link set lo up; exec python3 run.py'")
        let ports = output.split(separator: "\n").compactMap {
            $0.hasSuffix(#"{"end":true}"#) ? $0.prefix { $0 != "{" } : nil
        }
        #expect(ports.count == 2 && ports.first == ports.last, "\(output)")
        #expect(output.contains(#"{"why":"127.0.0.1 is an address of this machine"#), "\(output)")
    }

    private static let script = #"""
        import http.server, socket, subprocess, sys, threading, urllib.parse
        reached = []
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_GET(self):
                rest = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("next", [])
                if rest:
                    self.send_response(302)
                    self.send_header("Location", address(rest[0].split()))
                    self.end_headers()
                    return
                reached.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
        class Server(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6
            daemon_threads = True
            def server_bind(self):
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                super().server_bind()
        def address(hosts):
            query = "?" + urllib.parse.urlencode({"next": " ".join(hosts[1:])}) if hosts[1:] else ""
            return "http://%s:8080/feed.json%s" % (hosts[0], query)
        # The server on the second port is the proxy: a request to it has a whole URL as its path.
        for port in [8080, 8081]:
            threading.Thread(target=Server(("::", port), Handler).serve_forever, daemon=True).start()
        for line in sys.stdin.read().splitlines():
            reached.clear()
            ended = subprocess.run(["moult", "apply", "--store", "store", "--feed", address(line.split()), "--allow-unsigned"],
                capture_output=True, text=True)
            message = ended.stderr.splitlines()[0] if ended.stderr else ""
            refused = ended.returncode == 3 and "redirects to an address that moult refuses" in message
            if reached: print("reached" if not refused else "both: " + message)
            else: print(("refused: " if refused else "failed: ") + message)
        """#
}

enum NetworkNamespace {
    static var isAvailable: Bool {
        // Without `unshare` or `ip`, the tests are skipped as well.
        geteuid() == 0 && (try? Shell.run(["unshare", "-nm", "ip", "link", "set", "lo", "up"], in: "/").status) == 0
    }
}
