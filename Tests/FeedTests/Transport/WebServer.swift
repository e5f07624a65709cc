import CLinux
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// nginx, which serves a directory on a free port.
final class WebServer {
    let port: Int
    private let scratch: Scratch
    private let program: Background
    private let isSecure: Bool
    private var marks = 0

    /// Starts nginx. With a certificate, given as a path without its extension, nginx uses only TLS. `elsewhere` is the
    /// target of `/elsewhere`, and `requiring` has further lines of the configuration.
    init(_ directory: String, certificate: String? = nil, elsewhere: String = "/", requiring: String = "")
        throws
    {
        isSecure = certificate != nil
        scratch = try Scratch()
        port = try Port.free()
        let configuration = """
            daemon off; master_process off; pid \(scratch.path("pid")); error_log \(scratch.path("errors"));
            events {}
            http {
              log_format own '$connection\\t$uri'; access_log \(scratch.path("log")) own;
              client_body_temp_path \(scratch.path("body")); proxy_temp_path \(scratch.path("proxy"));
              fastcgi_temp_path \(scratch.path("f")); uwsgi_temp_path \(scratch.path("u")); scgi_temp_path \(scratch.path("s"));
              server {
                listen 127.0.0.1:\(port)\(isSecure ? " ssl" : ""); root \(directory);
                \(certificate.map { "ssl_certificate \($0).pem; ssl_certificate_key \($0).key;" } ?? "")
                \(requiring)
                location /elsewhere { return 302 \(elsewhere); }
                location /private/ { auth_basic "x"; auth_basic_user_file \(scratch.path("users")); }
                location /moved { return 302 http://127.0.0.1:\(port)/file; }
                location /astray { return 302 ftp://127.0.0.1/file; }
                location /secure { return 302 https://127.0.0.1:\(port)/file; }
                location /busy { return 503; }
              }
            }
            """
        try Files.writeNew(Array(configuration.utf8), to: scratch.path("conf"))
        // The password is "feather".
        try Files.writeNew(Array("moult:{PLAIN}feather\n".utf8), to: scratch.path("users"))
        program = try Background([
            "/usr/sbin/nginx", "-p", scratch.path, "-e", scratch.path("errors"), "-c", scratch.path("conf"),
        ])
        try program.wait { Port.answers(port) }
    }

    deinit { program.signal(SIGTERM) }

    struct Request: Equatable { let connection: String, path: String }

    /// Returns the requests so far, in order, without those of this function: nginx may write its log after the client has the
    /// response, so this function sends a request and waits for that one.
    func requests() throws -> [Request] {
        marks += 1
        try Shell.must(["curl", "-s", url("mark-\(marks)")])
        var found: [Request] = []
        repeat {
            found = try scratch.requestLog().map { Request(connection: $0[0], path: $0[1]) }
        } while !found.contains { $0.path == "/mark-\(marks)" }
        return found.filter { !$0.path.hasPrefix("/mark-") }
    }

    func url(_ name: String) -> String { "\(isSecure ? "https" : "http")://127.0.0.1:\(port)/\(name)" }
}

enum Port {
    /// Returns a port without a server.
    static func free() throws -> Int {
        let text = try Shell.must([
            "python3", "-c", "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); print(s.getsockname()[1])",
        ])
        guard let port = Int(text.split(separator: "\n")[0]) else {
            throw MoultError(.system, what: "no port: \(text)")
        }
        return port
    }

    static func answers(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
