import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// Debian's container registry on a free port of the loopback address, with its own storage.
final class Registry {
    let port: Int
    private let scratch: Scratch
    private var program: Background
    private let isSecure: Bool
    /// The directory in which the registry stores its content.
    let data: String

    static var isInstalled: Bool {
        ["/usr/bin/docker-registry", "/usr/bin/skopeo", "/usr/bin/htpasswd"].allSatisfy {
            (try? Files.factsThroughLinks($0)) != nil
        }
    }

    /// The credentials that the registry requires.
    enum Access {
        case everyone
        /// User `moult` with the password `feather`.
        case password
        case token(TokenService)
    }

    /// Starts the registry. With a certificate, given as a path without its extension, the registry uses only TLS. With
    /// `storage`, the registry redirects requests for blobs there; `data` is the directory of another registry.
    init(
        _ access: Access = .everyone, certificate: String? = nil, storage: String? = nil, data: String? = nil
    ) throws {
        scratch = try Scratch()
        self.data = data ?? scratch.path("data")
        port = try Port.free()
        isSecure = certificate != nil
        let tls = certificate.map { ", tls: {certificate: \($0).pem, key: \($0).key}" } ?? ""
        let authentication: String
        switch access {
        case .everyone: authentication = ""
        case .password:
            // Operators create the file with this program. The registry accepts only bcrypt.
            let line = try Shell.must(["htpasswd", "-Bbn", "-C", "4", "moult", "feather"])
            try Files.writeNew(Array(line.utf8), to: scratch.path("users"))
            authentication = "auth: {htpasswd: {realm: r, path: \(scratch.path("users"))}}"
        case .token(let service):
            authentication = """
                auth: {token: {realm: "\(service.url)", service: registry, issuer: moult-test, \
                rootcertbundle: \(service.certificate)}}
                """
        }
        let redirect = storage.map { "middleware: {storage: [{name: redirect, options: {baseurl: \"\($0)\"}}]}" } ?? ""
        let configuration = """
            version: 0.1
            log: {accesslog: {disabled: false}}
            storage: {filesystem: {rootdirectory: \(self.data)}, delete: {enabled: true}}
            http: {addr: "127.0.0.1:\(port)", secret: x\(tls)}
            \(authentication)
            \(redirect)

            """
        try Files.writeNew(Array(configuration.utf8), to: scratch.path("config"))
        program = try Self.start(scratch)
        try program.wait { Port.answers(port) }
    }

    private static func start(_ scratch: Scratch) throws -> Background {
        try Background([
            "sh", "-c", "exec docker-registry serve \(scratch.path("config")) >>\(scratch.path("log")) 2>&1",
        ])
    }

    deinit { program.signal(SIGTERM) }

    /// Returns the address of a repository, as moult expects it.
    func address(_ repository: String) -> String { "\(isSecure ? "oci" : "oci+http")://\(host)/\(repository)" }
    var host: String { "127.0.0.1:\(port)" }

    struct Request: Equatable, CustomStringConvertible {
        let method: String
        let path: String
        let status: Int
        var description: String { "\(method) \(path) \(status)" }
    }

    /// Returns the requests of moult in order, without their query strings.
    func requests() throws -> [Request] {
        let text = String(decoding: try Files.read(scratch.path("log"), limit: 1 << 26) ?? [], as: UTF8.self)
        return text.split(separator: "\n").filter { $0.hasSuffix("\"moult\"") }.compactMap { line in
            let parts = line.split(separator: "\"")
            guard parts.count > 2 else { return nil }
            let words = parts[1].split(separator: " ")
            guard words.count == 3, let status = parts[2].split(separator: " ").first.flatMap({ Int($0) }) else {
                return nil
            }
            return Request(
                method: String(words[0]), path: String(words[1].prefix { $0 != "?" }), status: status)
        }
    }

    /// Returns the requests that `body` makes.
    func requests(of body: () throws -> Void) throws -> [Request] {
        let before = try requests().count
        try body()
        return try requests().dropFirst(before).map { $0 }
    }
}
