internal import CCurl
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// The addresses to which the transfers of a request may connect.
///
/// A server on the internet must not send requests on to this machine or its network, where they would reach services that trust
/// their network. A server that has such an address itself may. libcurl asks for a socket with the address to which it is about to
/// connect, so a name cannot lead to another address after the check.
final class Reach {
    /// Whether local addresses are allowed: so far, all servers had such an address.
    private(set) var allowsLocal: Bool
    /// Whether the host of the current URL is this machine, or is written as a local address.
    private var isWrittenLocal = false
    /// The current transfer.
    private var curl: UnsafeMutableRawPointer?
    /// The local address that the current transfer was not allowed to use.
    private var refused: HostAddress?

    /// `isPublicOnly`: a public server has named the URL of the request.
    init(isPublicOnly: Bool) { allowsLocal = !isPublicOnly }

    /// Whether the server of the current transfer has a local address.
    var isLocal: Bool {
        if isWrittenLocal { return true }
        // The address of a proxy says nothing about that of the server.
        guard let curl, let (host, port) = Handle.peer(of: curl), !Proxy.ports.contains(port) else { return false }
        return HostAddress(host)?.isLocal ?? false
    }

    /// The reason why the current transfer failed, if it was not allowed to connect.
    var failure: Failure? { refused.map { Self.refusal($0.description) } }

    /// Prepares a transfer to this URL. Throws if a local address in it is not allowed: a proxy would connect to it.
    func prepare(_ curl: borrowing Handle, _ origin: Origin) throws {
        let isThisMachine = origin.host == "localhost" || origin.host.hasByteSuffix(".localhost")
        (isWrittenLocal, refused) = (HostAddress(origin.host)?.isLocal ?? isThisMachine, nil)
        self.curl = curl.curl
        if isWrittenLocal, !allowsLocal { throw Self.refusal(origin.host) }
        try curl.set(CURLOPT_OPENSOCKETDATA, pointer: Unmanaged.passUnretained(self).toOpaque())
        try curl.setOpenSocket { reach, _, address in
            guard let reach, let address else { return CURL_SOCKET_BAD }
            return Unmanaged<Reach>.fromOpaque(reach).takeUnretainedValue().open(address)
        }
    }

    private func open(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        let (host, port) = Self.parts(of: address)
        // The user has chosen the proxy, whatever its address is.
        if let host, host.isLocal, !Proxy.ports.contains(port), !allowsLocal {
            refused = host
            return CURL_SOCKET_BAD
        }
        return socket(address.pointee.family, address.pointee.socktype, address.pointee.protocol)
    }

    /// Ends a transfer that has brought a response.
    func finish() {
        if !isLocal { allowsLocal = false }
        refused = nil
    }

    private static func parts(of address: UnsafeMutablePointer<curl_sockaddr>) -> (HostAddress?, port: Int) {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return (nil, 0) }
        let bytes = UnsafeRawBufferPointer(
            start: UnsafeRawPointer(address) + offset, count: Int(address.pointee.addrlen))
        guard bytes.count >= 8 else { return (nil, 0) }
        // The address follows the family and the port; in IPv6, also the flow.
        let isIPv4 = address.pointee.family == AF_INET
        let host = isIPv4 ? Array(bytes[4..<8]) : Array(bytes.dropFirst(8).prefix(16))
        return (HostAddress(host), Int(bytes[2]) << 8 | Int(bytes[3]))
    }

    private static func refusal(_ host: String) -> Failure {
        Failure("\(host) is an address of this machine or its network, and the server is not", .redirect)
    }
}

/// The ports of the proxies in the environment variables that libcurl reads.
enum Proxy {
    private static let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    fileprivate static let ports = Set(names.compactMap { ProcessEnvironment.word($0) }.map(port))

    /// The variables that name a proxy for a URL with this scheme; nil if none does.
    static func variable(for scheme: String) -> String? {
        names.first { name in
            ProcessEnvironment.word(name) != nil
                && (name.lowercased() == "all_proxy" || name.lowercased().hasPrefix("\(scheme)_"))
        }
    }

    private static func port(_ proxy: String) -> Int {
        let parts = proxy.split(separator: "://", maxSplits: 1)
        let host = (parts.last ?? "").prefix { $0 != "/" }
        let digits = host.split(separator: "]").last?.split(separator: ":", omittingEmptySubsequences: false)
        if let digits, digits.count > 1, let port = digits.last.flatMap({ Int($0) }) { return port }
        // libcurl's default for all proxies but those with TLS.
        return parts.count > 1 && parts[0].lowercased() == "https" ? 443 : 1080
    }
}
