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
    var offset = 0
    var ifRange: String?
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
    var proof: ClientProof?
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
        case .crash(let complaint) where Helper.lacksLibrary(complaint): throw Helper.cannotStart(complaint)
        case .crash(let complaint):
            // Perhaps because of the server's data, perhaps because of a signal to the whole process group. Another attempt shows
            // which.
            throw unreachable("\(Helper.name) failed: \(url.redacted(complaint))")
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
        case "scheme":
            MoultError(
                .badAnswer, .refused, what: "\(url) redirects to another scheme", why: why,
                now: "If you trust the target, use its address directly.")
        case "redirect":
            MoultError(
                .badAnswer, .refused, what: "\(url) redirects to an address that moult refuses", why: why,
                now: "If you trust the target, use its address directly.")
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
