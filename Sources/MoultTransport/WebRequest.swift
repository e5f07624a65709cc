internal import MoultBasics

/// A request to a web server, sent by the helper program.
struct WebRequest {
    enum Method: String { case get = "GET", head = "HEAD", post = "POST", put = "PUT", patch = "PATCH" }
    enum Body {
        case text(String, type: String)
        case file(String, Range<Int>)
    }

    let url: Address
    var method = Method.get
    /// The offset at which to resume; 0 requests the whole file.
    var offset = 0
    /// The transfer resumes only if the server's file still has this tag.
    var ifRange: String?
    /// The server sends no body if its file still has this tag.
    var ifNoneMatch: String?
    /// Whether caches between this machine and the server must ask the server whether their copy is current.
    var isFresh = false
    /// The accepted media types.
    var accept: String?
    var body: Body?
    /// The Authorization header, and the URL whose host and port receive it. With an authority, `~/.netrc` is not used.
    var authorization: String?
    var authority: String?
    /// What proves to certain servers who this client is.
    var proof: ClientFiles.Proof?
    /// Whether a public server has named the URL. Then the request does not connect to this machine or its network.
    var isPublicOnly = false
    /// The beginning of error messages, such as "cannot publish …"; nil for "cannot get" and the URL.
    var purpose: String?

    private var failed: String { purpose ?? "cannot get \(url)" }

    /// Sends the request, passes the response to `sink` as it arrives, and returns its head.
    func perform(
        by helper: HelperProcess, _ retryPolicy: Transport.RetryPolicy, until: ContinuousClock.Instant,
        _ sink: any ResponseSink, _ stopIfAsked: () throws -> Void
    ) throws -> WebHead {
        let outcome = try helper.perform(json(retryPolicy, until), uploading: file, sink) {
            try stopIfAsked()
            if ContinuousClock.now >= until { throw late }
        }
        switch outcome {
        case .response(let head): return head
        case .failure(let why, let kind): throw failure(url.redacted(why), kind, until)
        case .crash(let complaint) where HelperProcess.lacksLibrary(complaint):
            throw HelperProcess.cannotStart(complaint)
        case .crash(let complaint):
            // Perhaps because of the server's data, perhaps because of a signal to the whole process group. Another attempt shows
            // which.
            throw unreachable("\(HelperProcess.name) failed: \(url.redacted(complaint))")
        }
    }

    private func json(_ retryPolicy: Transport.RetryPolicy, _ until: ContinuousClock.Instant) -> JSON {
        // The helper gets a little more than the remaining time, so that this process stops first and reports the reason.
        let left = max(until - .now, .zero) + .seconds(1)
        return .record([
            "url": url.withSecrets, "offset": offset, "ifRange": ifRange, "ifNoneMatch": ifNoneMatch,
            "patience": retryPolicy.patience, "minimumRate": retryPolicy.minimumRate,
            "deadline": Int(left.components.seconds) + 1, "bandwidth": retryPolicy.bandwidth, "method": method.rawValue,
            "accept": accept, "isFresh": isFresh ? true : nil, "authorization": authorization, "authority": authority,
            "usesNetrc": authority == nil, "isPublicOnly": isPublicOnly ? true : nil, "client": proof?.json,
            "contentType": contentType, "text": text, "bodyOffset": part.map(\.lowerBound),
            "bodySize": part.map(\.count),
        ])
    }

    private var contentType: String? {
        switch body {
        case .text(_, let type): type
        case .file: "application/octet-stream"
        case nil: nil
        }
    }

    private var text: String? { if case .text(let text, _) = body { text } else { nil } }
    private var file: String? { if case .file(let path, _) = body { path } else { nil } }
    private var part: Range<Int>? { if case .file(_, let part) = body { part } else { nil } }

    /// The error for a request that took longer than the time limit.
    private var late: Retryable {
        Retryable(
            MoultError(
                .unreachable, .busy, what: failed, why: "the request took longer than the time limit",
                now: #"Try again later. The limits are "fileDeadline" and "deadline" under "feed" in moult.json."#),
            isSlow: true)
    }

    private func failure(_ why: String, _ kind: String?, _ until: ContinuousClock.Instant) -> any Error {
        switch kind {
        case "scheme", "redirect":
            MoultError(
                .badAnswer, .refused,
                what: "\(url) redirects to \(kind == "scheme" ? "another scheme" : "an address that moult refuses")",
                why: why, now: "If you trust the target, use its address directly.")
        case "slow": ContinuousClock.now >= until ? late : Retryable(unreachable(why), isSlow: true)
        case "transient": unreachable(why)
        default:
            MoultError(.notThere, what: failed, why: why, now: "Check the address and the network.")
        }
    }

    private func unreachable(_ why: String) -> MoultError {
        MoultError(.unreachable, .busy, what: failed, why: why, now: "Try again later.")
    }
}

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
        304: "not modified", 400: "bad request", 401: "not authorized", 403: "forbidden", 404: "not found",
        407: "the proxy requires a password", 408: "timed out", 410: "gone", 429: "too many requests",
        500: "internal error", 502: "bad gateway", 503: "not available", 504: "gateway timed out",
    ]
}
