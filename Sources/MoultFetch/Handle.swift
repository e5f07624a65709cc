internal import CCurl

/// One transfer of libcurl; every return code is checked.
struct Handle: ~Copyable {
    let curl: UnsafeMutableRawPointer

    init() throws {
        guard let curl = curl_easy_init() else { throw Failure("libcurl cannot start") }
        self.curl = curl
    }

    deinit { curl_easy_cleanup(curl) }

    func set(_ option: CURLoption, _ value: Int) throws { try check(moult_curl_set_long(curl, option, value)) }
    func set(_ option: CURLoption, text: String) throws { try check(moult_curl_set_string(curl, option, text)) }
    func set(_ option: CURLoption, offset: Int) throws {
        try check(moult_curl_set_offset(curl, option, curl_off_t(offset)))
    }
    func set(_ option: CURLoption, blob text: String) throws {
        try check(moult_curl_set_blob(curl, option, text, text.utf8.count))
    }
    func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) throws {
        try check(moult_curl_set_pointer(curl, option, pointer))
    }
    func set(
        _ option: CURLoption,
        call: @escaping @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int
    ) throws { try check(moult_curl_set_callback(curl, option, call)) }

    func setOpenSocket(
        _ call:
            @escaping @convention(c) (
                UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?
            ) -> curl_socket_t
    ) throws { try check(moult_curl_set_open_socket(curl, call)) }

    /// Returns the URL that the response redirects to; nil if it does not redirect.
    func redirect() throws -> String? {
        var url: UnsafeMutablePointer<CChar>?
        try check(moult_curl_get_string(curl, CURLINFO_REDIRECT_URL, &url))
        return url.map { String(cString: $0) }
    }

    /// Returns the address at the other end of the connection, and its port.
    static func peer(of curl: UnsafeMutableRawPointer) -> (host: String, port: Int)? {
        var (text, port) = (UnsafeMutablePointer<CChar>?.none, 0)
        guard moult_curl_get_string(curl, CURLINFO_PRIMARY_IP, &text) == CURLE_OK, let text,
            moult_curl_get_long(curl, CURLINFO_PRIMARY_PORT, &port) == CURLE_OK
        else { return nil }
        return (String(cString: text), port)
    }

    /// Returns the seconds that the server asks clients to wait, given as a number or as a date.
    func retryAfter() throws -> Int? {
        var seconds: curl_off_t = 0
        try check(moult_curl_get_offset(curl, CURLINFO_RETRY_AFTER, &seconds))
        return seconds > 0 ? Int(seconds) : nil
    }

    private func check(_ code: CURLcode) throws {
        if code != CURLE_OK { throw Failure(String(cString: curl_easy_strerror(code))) }
    }
}

/// Connections that transfers leave open for later ones. Each transfer still has a handle of its own, so that no option and no
/// password of one transfer reaches another.
final class ConnectionPool {
    let share: UnsafeMutableRawPointer

    init() throws {
        guard let share = curl_share_init() else { throw Failure("libcurl cannot start") }
        self.share = share
        guard moult_curl_share(share, CURL_LOCK_DATA_CONNECT) == CURLSHE_OK else {
            throw Failure("libcurl cannot start")
        }
    }

    deinit { curl_share_cleanup(share) }
}

/// The headers that the request adds to libcurl's own.
final class HeaderList {
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    init(_ request: Request, authorization: String?, client: Request.Client?) throws {
        // Bytes are counted and hashed as they are stored, so they must not be encoded for the transfer.
        try add("Accept-Encoding: identity")
        if let types = request.accept { try add("Accept: \(types)") }
        if let type = request.contentType { try add("Content-Type: \(type)") }
        // No `Expect: 100-continue`: it costs a round trip, or a second if the server ignores it.
        if !request.method.isRead { try add("Expect:") }
        for line in client?.headers ?? [] { try add(line) }
        if let proof = authorization { try add("Authorization: \(proof)") }
        if request.offset > 0 { try add("Range: bytes=\(request.offset)-") }
        if let tag = request.ifRange, request.offset > 0 { try add("If-Range: \(tag)") }
        if let tag = request.ifNoneMatch { try add("If-None-Match: \(tag)") }
        if request.isFresh { try add("Cache-Control: no-cache") }
    }

    private func add(_ line: String) throws {
        // A tag comes from a server: it must not inject another header.
        guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else { return }
        guard let longer = curl_slist_append(list, line) else { throw Failure("out of memory for a header") }
        list = longer
    }

    deinit { curl_slist_free_all(list) }
}

/// The reason why no response arrived.
struct Failure: Error {
    /// The kind of failure, for the caller. Only `transient` and `slow` failures may be temporary.
    enum Kind: String {
        case transient, slow, scheme, redirect, other
    }

    let why: String
    let kind: Kind

    init(_ why: String, _ kind: Kind = .other) { (self.why, self.kind) = (why, kind) }
}

/// Scheme, host and port of a URL, which determine who receives a request.
struct Origin: Equatable {
    let scheme: String
    let host: String
    let port: String
    /// Whether the URL has a user or password in it.
    let hasPassword: Bool

    /// Nil if libcurl cannot parse the URL.
    init?(_ url: String) {
        guard let handle = curl_url() else { return nil }
        defer { curl_url_cleanup(handle) }
        guard curl_url_set(handle, CURLUPART_URL, url, 0) == CURLUE_OK else { return nil }
        func part(_ part: CURLUPart) -> String? {
            var text: UnsafeMutablePointer<CChar>?
            guard curl_url_get(handle, part, &text, UInt32(CURLU_DEFAULT_PORT)) == CURLUE_OK, let text else {
                return nil
            }
            defer { curl_free(text) }
            return String(cString: text)
        }
        guard let scheme = part(CURLUPART_SCHEME), let host = part(CURLUPART_HOST), let port = part(CURLUPART_PORT)
        else { return nil }
        (self.scheme, self.host, self.port) = (scheme.lowercased(), host.lowercased(), port)
        hasPassword = part(CURLUPART_USER) != nil || part(CURLUPART_PASSWORD) != nil
    }

    /// Resolves a URL in a response, which may be relative; nil if libcurl cannot parse it.
    static func resolve(_ text: String, from url: String) -> String? {
        guard let handle = curl_url() else { return nil }
        defer { curl_url_cleanup(handle) }
        var whole: UnsafeMutablePointer<CChar>?
        guard curl_url_set(handle, CURLUPART_URL, url, 0) == CURLUE_OK,
            curl_url_set(handle, CURLUPART_URL, text, 0) == CURLUE_OK,
            curl_url_get(handle, CURLUPART_URL, &whole, 0) == CURLUE_OK, let whole
        else { return nil }
        defer { curl_free(whole) }
        return String(cString: whole)
    }
}
