import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// nginx in front of a registry, as operators configure it. Tests can change its rules.
final class RegistryFront {
    let port: Int
    private let scratch: Scratch
    private let upstream: Int
    private var program: Background?

    init(before registry: Registry) throws {
        (scratch, upstream, port) = (try Scratch(), registry.port, try Port.free())
        // The password is "feather".
        try Files.writeNew(Array("moult:{PLAIN}feather\n".utf8), to: scratch.path("users"))
        try Files.writeNew([], to: scratch.path("access"))
    }

    deinit { program?.signal(SIGKILL) }

    var host: String { "127.0.0.1:\(port)" }
    func address(_ repository: String) -> String { "oci+http://\(host)/\(repository)" }
    /// The password file, which has the user `moult`.
    var users: String { scratch.path("users") }

    /// Starts or restarts nginx. `rules` are for the server, `common` for all requests that reach the registry.
    func start(_ rules: String = "", common: String = "", http: String = "") throws {
        stop()
        let pass = """
            proxy_pass http://127.0.0.1:\(upstream); proxy_set_header Host $http_host; client_max_body_size 0;
            proxy_http_version 1.1; \(common)
            """
        let configuration = """
            daemon off; master_process off; pid \(scratch.path("pid")); error_log \(scratch.path("errors"));
            events {}
            http {
              log_format short '$request_method $uri $status'; access_log \(scratch.path("access")) short;
              client_body_temp_path \(scratch.path("body")); proxy_temp_path \(scratch.path("proxy"));
              fastcgi_temp_path \(scratch.path("f")); uwsgi_temp_path \(scratch.path("u")); scgi_temp_path \(scratch.path("s"));
              \(http)
              server {
                listen 127.0.0.1:\(port);
                \(rules.replacing("PASS", with: pass))
                location / { \(pass) }
              }
            }
            """
        try Files.replace(scratch.path("conf"), with: Array(configuration.utf8))
        let program = try Background([
            "/usr/sbin/nginx", "-p", scratch.path, "-e", scratch.path("errors"), "-c", scratch.path("conf"),
        ])
        try program.wait { Port.answers(port) }
        self.program = program
    }

    /// Stops nginx at once, in the middle of a transfer.
    func stop() {
        program?.signal(SIGKILL)
        // The next start would fail while the port is in use.
        while program != nil, Port.answers(port) { usleep(1000) }
        program = nil
    }

    /// Returns the requests so far, as `GET /v2/… 200`.
    func requests() throws -> [String] {
        String(decoding: try Files.read(scratch.path("access"), limit: 1 << 24) ?? [], as: UTF8.self)
            .split(separator: "\n").map { String($0) }
    }
}
