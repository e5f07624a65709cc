internal import MoultBasics

/// What a web server says before the body.
struct WebHead: Equatable {
    let status: Int
    let tag: String?
    /// Where the body begins in the whole.
    let offset: Int
    /// How large the whole is, if the server says so.
    let total: Int?

    init(parsing line: [UInt8], source: String) throws {
        let fields = try Fields(JSON(parsing: line, source: source)) { place, why, _ in
            MoultError(.helper, what: "\(source) does not speak as it should", why: "\(place) \(why)")
        }
        status = try fields.integer("status")
        tag = try fields.optionalString("etag")
        offset = try fields.integer("offset")
        total = try fields.optionalInteger("total")
    }

    /// The error for an answer that brings nothing; some of them may be another one a moment later.
    func refusal(_ url: String) -> MoultError {
        let isTransient = [408, 425, 429, 500, 502, 503, 504].contains(status)
        let why = "the server answers with \(status)\(Self.words[status].map { " (\($0))" } ?? "")"
        return isTransient
            ? MoultError(.unreachable, .busy, what: "cannot get \(url)", why: why, now: "Try again later.")
            : MoultError(
                .notThere, what: "cannot get \(url)", why: why,
                now: status == 401 || status == 403 || status == 407
                    ? "Put name and password for that host into ~/.netrc, or ask who runs the server."
                    : "Look at the address, or tell whoever runs the server.")
    }

    private static let words = [
        400: "bad request", 401: "not authorized", 403: "forbidden", 404: "not found",
        407: "the proxy wants a password",
        408: "timed out", 410: "gone", 429: "too many requests", 500: "internal error", 502: "bad gateway",
        503: "not available", 504: "gateway timed out",
    ]
}
