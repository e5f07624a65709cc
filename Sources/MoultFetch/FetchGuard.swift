internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// Drops the rights of this program before it reads a request. It can resolve server names and talk to servers, and
/// read the files that the C library and OpenSSL need for that. It cannot write files or start programs.
enum FetchGuard {
    #if SANITIZED
        /// The shadow memory of the address sanitizer alone takes terabytes of address space.
        private static let memory: Int? = nil
    #else
        private static let memory: Int? = 1 << 30
    #endif

    static func confine() throws {
        // A file that is missing or unreadable now will not be readable later either.
        let existing = try readable.filter { (try? Files.factsThroughLinks($0)) != nil }
        try Guard(.fetch, reading: .only(existing), limits: .init(memory: memory)).confineThisProcess()
    }

    private static var readable: [String] {
        get throws {
            let variables = ["CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF"]
            let named = try variables.compactMap { try ProcessEnvironment.value($0) }
            return names + libraries + authorities + named + (try Netrc.path.map { [$0] } ?? [])
        }
    }

    /// The configuration files for resolving the names of hosts and services.
    private static let names =
        [
            "resolv.conf", "hosts", "nsswitch.conf", "host.conf", "gai.conf", "services", "protocols", "passwd",
            "localtime",
        ].map { "/etc/\($0)" } + ["systemd/resolve", "resolvconf", "NetworkManager", "nscd"].map { "/run/\($0)" }

    /// The directories from which the C library loads a library for each method of name resolution, the linker's cache, and two
    /// devices.
    private static let libraries =
        ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"] + [
            "/dev/null", "/dev/urandom",
        ]

    /// The certificate directories of distributions, without the directory of private keys.
    private static let authorities = [
        "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/usr/share/ca-certificates",
        "/usr/local/share/ca-certificates", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf",
        "/etc/pki/ca-trust", "/etc/crypto-policies", "/usr/share/crypto-policies", "/usr/share/pki",
        "/var/lib/ca-certificates",
    ]
}
