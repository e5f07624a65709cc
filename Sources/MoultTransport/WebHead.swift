internal import MoultBasics

/// The head of a web server's response.
struct WebHead: Equatable {
    let status: Int
    let tag: String?
    /// The offset of the body within the file.
    let offset: Int
    /// The total size of the file, if the server reports it.
    let total: Int?
    /// The seconds that the server asks clients to wait.
    let retryAfter: Int?
    /// Whether `~/.netrc` was not used, because other users can read it.
    let isNetrcExposed: Bool
    /// Whether the server has an address of this machine or its network.
    let isLocal: Bool
    /// The digest that a registry reports, with its algorithm.
    let digest: String?
    /// The absolute URL for the rest of an upload.
    let uploadURL: String?
    /// The authentication schemes that the server accepts.
    let challenges: [String]
    /// The error code of a registry.
    let code: String?
    /// The range of an upload that the registry has received, such as `0-399`.
    let sent: String?

    init(_ json: JSON, source: String) throws {
        let fields = try Fields(json) { place, why, _ in
            MoultError(.helper, what: "\(source) sent an invalid reply", why: "\(place) \(why)")
        }
        status = try fields.integer("status")
        tag = try fields.optionalString("etag")
        offset = try fields.integer("offset")
        total = try fields.optionalInteger("total")
        retryAfter = try fields.optionalInteger("retryAfter")
        isNetrcExposed = try fields.optionalBool("isNetrcExposed") ?? false
        isLocal = try fields.optionalBool("isLocal") ?? false
        digest = try fields.optionalString("digest")
        uploadURL = try fields.optionalString("location")
        challenges = try fields.optionalStrings("challenges") ?? []
        code = try fields.optionalString("code")
        sent = try fields.optionalString("sent")
    }

    /// Returns the error for a response without the file: a `Retryable` if the failure may be temporary.
    func refusal(_ url: Address) -> any Error {
        if let transient = transient("cannot get \(url)") { return transient }
        let isSecure = url.withSecrets.lowercased().hasPrefix("https:")
        let now: Advice =
            switch status {
            case 401 where !isSecure, 403 where !isSecure: "Use HTTPS: moult sends no password over plain HTTP."
            case 401 where isNetrcExposed, 403 where isNetrcExposed:
                "Other users can read ~/.netrc, so it was not used. Protect it: \(run: ["chmod", "600"], "~/.netrc")"
            case 400 where isSecure:
                #"If the server requires a client certificate: "certificate" under "feed" in moult.json."#
            case 407:
                "Put the name and the password into the address of the proxy: https_proxy=http://NAME:PASSWORD@HOST:PORT"
            case 401, 403:
                "Put the name and password for that host into ~/.netrc, or ask the operator of the server."
            default: "Check the address, or report it to the operator of the server."
            }
        return MoultError(.notThere, what: "cannot get \(url)", why: why, now: now)
    }

    /// The error for a server that answers a request without a condition with "not modified".
    func unaskedRefusal(_ url: Address) -> MoultError {
        MoultError(
            .badAnswer, .refused, what: "cannot get \(url)",
            why: "\(why), although moult asked for the file whatever its version",
            now: "Report this to the operator of the server.")
    }

    /// Returns the error for a temporary failure; nil for other responses.
    func transient(_ what: String) -> Retryable? {
        guard [408, 425, 429, 500, 502, 503, 504].contains(status) else { return nil }
        return Retryable(
            MoultError(.unreachable, .busy, what: what, why: why, now: "Try again later."), pause: retryAfter)
    }

    var why: String {
        "the server replied with status \(status)\(Self.words[status].map { " (\($0))" } ?? "")"
            + (code.map { ": \($0)" } ?? "")
    }

    private static let words = [
        304: "not modified",
        400: "bad request", 401: "not authorized", 403: "forbidden", 404: "not found",
        407: "the proxy requires a password",
        408: "timed out", 410: "gone", 429: "too many requests", 500: "internal error", 502: "bad gateway",
        503: "not available", 504: "gateway timed out",
    ]
}
