internal import CCurl
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// Serves the requests of one command with libcurl, one after the other, and keeps the connections to the servers open.
struct Fetch {
    /// The pools of connections. `Reach` checks an address only when a connection opens, so transfers that may not connect to local
    /// addresses use a pool of their own, in which every connection passed that check.
    private let all: ConnectionPool
    private let publicOnly: ConnectionPool

    private init() throws { (all, publicOnly) = (try ConnectionPool(), try ConnectionPool()) }

    /// Answers the requests of the parent, until it closes the input: with a response, whatever its status, or with the reason why
    /// none arrived. Returns the exit status: 1 for other errors, such as an invalid request, whose reason goes to stderr.
    static func run() -> Int32 {
        signal(SIGPIPE, SIG_IGN)
        do {
            try confine()
            guard curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK else { throw Failure("libcurl cannot start") }
            let fetch = try Fetch()
            var parent = ParentChannel(longest: Request.largest)
            while let request = try parent.next() { try fetch.answer(Request(request)) }
            return 0
        } catch {
            let line = "\((error as? Failure)?.why ?? "\(error)")\n"
            // If this fails, the parent has ended.
            _ = write(STDERR_FILENO, line, line.utf8.count)
            return 1
        }
    }

    private func answer(_ request: Request) throws {
        do { try follow(request) } catch let failure as Failure {
            return try ParentChannel.send(.record(["why": failure.why, "kind": failure.kind.rawValue]))
        }
        try ParentChannel.send(["end": true])
    }

    private static let maxRedirects = 5

    /// Sends the request and follows redirects, each with a new transfer, because libcurl would look up passwords for the other
    /// host.
    private func follow(_ request: Request) throws {
        guard let first = Origin(request.url), let authority = Origin(request.authority) else {
            throw Failure("libcurl cannot parse the URL")
        }
        let end = ContinuousClock.now + .seconds(request.deadline)
        let reach = Reach(isPublicOnly: request.isPublicOnly)
        var url = request.url
        for _ in 0...Self.maxRedirects {
            guard let next = try transfer(url, first, authority, request, reach, until: end) else { return }
            guard request.method.isRead else { throw Failure("the server redirects an upload", .redirect) }
            guard let origin = Origin(next) else { throw Failure("libcurl cannot parse the redirect", .redirect) }
            // A redirect must not lead from https to http, or to a file.
            guard origin.scheme == first.scheme else {
                throw Failure("the redirect has the scheme \(origin.scheme)", .scheme)
            }
            if origin.hasPassword { throw Failure("the redirect contains a password", .redirect) }
            url = next
        }
        throw Failure("the server redirects more than \(Self.maxRedirects) times", .redirect)
    }

    /// Writes the response, or returns the URL that it redirects to.
    private func transfer(
        _ url: String, _ first: Origin, _ authority: Origin, _ request: Request, _ reach: Reach,
        until end: ContinuousClock.Instant
    ) throws -> String? {
        guard let origin = Origin(url) else { throw Failure("libcurl cannot parse the URL") }
        let curl = try Handle()
        try curl.set(CURLOPT_SHARE, pointer: (reach.allowsLocal ? all : publicOnly).share)
        let answer = Answer(to: url, reach)
        let body = Body(request)
        // The Authorization header is not sent after a redirect to another host.
        let isKnown = origin == authority
        // The client's certificate and headers are sent only over TLS, and only to the hosts for which they are meant.
        let isTold = origin.scheme == "https" && request.client?.places.contains { Origin($0) == origin } == true
        let client = isTold ? request.client : nil
        let headers = try HeaderList(request, authorization: isKnown ? request.authorization : nil, client: client)
        var message = [CChar](repeating: 0, count: Int(CURL_ERROR_SIZE))
        let result = try message.withUnsafeMutableBufferPointer { buffer in
            try curl.set(CURLOPT_ERRORBUFFER, pointer: buffer.baseAddress)
            try Self.prepare(curl, url, request, headers, answer)
            try Self.send(curl, request, body)
            try client?.prepare(curl)
            try reach.prepare(curl, origin)
            // Passwords come from `~/.netrc`. They are sent only over TLS, and only to the host of the original URL.
            let isTrusted = request.usesNetrc && first.scheme == "https" && origin == first
            answer.isNetrcExposed = try isTrusted && Self.isNetrcExposed()
            let isRead = isTrusted && !answer.isNetrcExposed
            try curl.set(CURLOPT_NETRC, Int((isRead ? CURL_NETRC_OPTIONAL : CURL_NETRC_IGNORED).rawValue))
            let left = max(.milliseconds(1), end - .now).components
            try curl.set(CURLOPT_TIMEOUT_MS, Int(left.seconds) * 1000 + Int(left.attoseconds / 1_000_000_000_000_000))
            return curl_easy_perform(curl.curl)
        }
        if result == CURLE_OK || answer.isEnough {
            reach.finish()
            if let next = try curl.redirect() { return next }
            answer.retryAfter = try curl.retryAfter()
            if answer.writeHead() { return nil }
        }
        if let failure = reach.failure { throw failure }
        if answer.isCut { throw Failure("the parent closed the pipe") }
        if let failure = body?.failure, failure != 0 {
            throw Failure("cannot read the file to upload: \(Errno(failure))")
        }
        if answer.isHeaderTooLarge {
            throw Failure("the response header is larger than \(ByteCount(Answer.largestHeader))")
        }
        let text = String(decoding: message.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        let why = text.isEmpty ? String(cString: curl_easy_strerror(result)) : text
        let isProxys = [CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_RECV_ERROR].contains(result)
        let proxy = isProxys ? Proxy.variable(for: origin.scheme).map { " (the variable \($0) names a proxy)" } : nil
        throw Failure(
            why + (proxy ?? ""),
            result == CURLE_OPERATION_TIMEDOUT ? .slow : Self.transient.contains(result) ? .transient : .other)
    }

    /// Failures that may be temporary.
    private static let transient: [CURLcode] = [
        CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_PARTIAL_FILE,
        CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
        // The server has closed a kept connection while a body was sent.
        CURLE_SEND_FAIL_REWIND, CURLE_HTTP2, CURLE_HTTP2_STREAM,
        CURLE_AGAIN,
    ]

    /// Sets the method and the body.
    private static func send(_ curl: borrowing Handle, _ request: Request, _ body: Body?) throws {
        switch request.method {
        case .get: return
        case .head: return try curl.set(CURLOPT_NOBODY, 1)
        case .post, .put, .patch: break
        }
        guard let body else {
            try curl.set(CURLOPT_POST, 1)
            // Without an explicit empty body, libcurl would read the body from stdin.
            try curl.set(CURLOPT_COPYPOSTFIELDS, text: "")
            return try curl.set(CURLOPT_CUSTOMREQUEST, text: request.method.rawValue)
        }
        try curl.set(CURLOPT_UPLOAD, 1)
        try curl.set(CURLOPT_CUSTOMREQUEST, text: request.method.rawValue)
        try curl.set(CURLOPT_INFILESIZE_LARGE, offset: body.size)
        try curl.set(CURLOPT_MAX_SEND_SPEED_LARGE, offset: request.bandwidth)
        try curl.set(CURLOPT_READDATA, pointer: Unmanaged.passUnretained(body).toOpaque())
        try curl.set(CURLOPT_READFUNCTION) { bytes, size, count, body in
            guard let bytes, let body else { return Int(CURL_READFUNC_ABORT) }
            let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
            return Unmanaged<Body>.fromOpaque(body).takeUnretainedValue().read(into: buffer)
                ?? Int(CURL_READFUNC_ABORT)
        }
    }

    private static func prepare(
        _ curl: borrowing Handle, _ url: String, _ request: Request, _ headers: HeaderList, _ answer: Answer
    ) throws {
        try curl.set(CURLOPT_URL, text: url)
        try curl.set(CURLOPT_NOSIGNAL, 1)
        try curl.set(CURLOPT_USERAGENT, text: "moult")
        try curl.set(CURLOPT_PROTOCOLS_STR, text: "http,https")
        try curl.set(CURLOPT_FOLLOWLOCATION, 0)
        try curl.set(CURLOPT_CONNECTTIMEOUT, max(1, request.patience))
        // The operator's bandwidth limit may be lower than the minimum rate.
        let slowest = request.bandwidth > 0 ? min(request.minimumRate, request.bandwidth / 2) : request.minimumRate
        try curl.set(CURLOPT_LOW_SPEED_LIMIT, max(1, slowest))
        try curl.set(CURLOPT_LOW_SPEED_TIME, max(1, request.patience))
        try curl.set(CURLOPT_MAX_RECV_SPEED_LARGE, offset: request.bandwidth)
        // libcurl may fill its buffer a hundred times before it checks the speed, so a low limit needs a small buffer.
        if request.bandwidth > 0 { try curl.set(CURLOPT_BUFFERSIZE, max(1024, min(16_384, request.bandwidth / 200))) }
        try curl.set(CURLOPT_HTTPHEADER, pointer: UnsafeMutableRawPointer(headers.list))
        try authorities(curl)
        let sink = Unmanaged.passUnretained(answer).toOpaque()
        try curl.set(CURLOPT_HEADERDATA, pointer: sink)
        try curl.set(CURLOPT_WRITEDATA, pointer: sink)
        try curl.set(CURLOPT_HEADERFUNCTION) { bytes, size, count, sink in
            guard let bytes, let sink else { return 0 }
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            let text = String(decoding: line.prefix { $0 != 13 && $0 != 10 }, as: UTF8.self)
            return Unmanaged<Answer>.fromOpaque(sink).takeUnretainedValue().header(text) ? size * count : 0
        }
        try curl.set(CURLOPT_WRITEFUNCTION) { bytes, size, count, sink in
            guard let bytes, let sink else { return 0 }
            let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return Unmanaged<Answer>.fromOpaque(sink).takeUnretainedValue().body(part) ? size * count : 0
        }
    }

    /// Uses the certificate authorities in the environment variables that curl and OpenSSL read, in place of the system's.
    private static func authorities(_ curl: borrowing Handle) throws {
        let file = try ProcessEnvironment.value("CURL_CA_BUNDLE") ?? ProcessEnvironment.value("SSL_CERT_FILE")
        if let file { try curl.set(CURLOPT_CAINFO, text: file) }
        if let directory = try ProcessEnvironment.value("SSL_CERT_DIR") {
            try curl.set(CURLOPT_CAPATH, text: directory)
        }
    }
}

/// Drops the rights of this program before it reads a request. It can resolve server names and talk to servers, and
/// read the files that the C library and OpenSSL need for that. It cannot write files or start programs.
extension Fetch {
    #if SANITIZED
        /// The shadow memory of the address sanitizer alone takes terabytes of address space.
        private static let memory: Int? = nil
    #else
        private static let memory: Int? = 1 << 30
    #endif

    private static func confine() throws {
        // A file that is missing or unreadable now will not be readable later either.
        let existing = try readable.filter { (try? Files.factsThroughLinks($0)) != nil }
        try Guard(.fetch, reading: .only(existing), limits: .init(memory: memory)).confineThisProcess()
    }

    private static var readable: [String] {
        get throws {
            let variables = ["CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF"]
            let named = try variables.compactMap { try ProcessEnvironment.value($0) }
            return names + libraries + authorities + named + (try netrc.map { [$0] } ?? [])
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

    /// The user's password file, at the path where libcurl looks for it.
    private static var netrc: String? { get throws { try ProcessEnvironment.value("HOME").map { "\($0)/.netrc" } } }

    /// Returns whether other users can read or change the file; if they can, it is not used.
    private static func isNetrcExposed() throws -> Bool {
        guard let path = try netrc, let facts = try Files.factsThroughLinks(path) else { return false }
        return facts.mode & 0o077 != 0 || ![0, geteuid()].contains(facts.owner)
    }
}
