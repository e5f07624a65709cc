internal import CCurl

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
