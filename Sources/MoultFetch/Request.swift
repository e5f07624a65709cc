internal import CCurl
internal import MoultBasics
internal import MoultFiles

/// A request, one JSON object.
struct Request {
    enum Method: String, CaseIterable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"

        /// Whether the request changes nothing on the server, so that redirects may be followed.
        var isRead: Bool { self == .get || self == .head }
    }

    let url: String
    let method: Method
    /// The accepted media types.
    let accept: String?
    /// The media type of the body.
    let contentType: String?
    /// The body as text, if it is small.
    let text: String?
    /// The body as a range of the file on descriptor 3.
    let file: Range<Int>?
    /// The Authorization header.
    let authorization: String?
    let client: Client?
    /// The Authorization header is sent only to the host and port of this URL.
    let authority: String
    /// Whether a public server has named the URL, so that the request must not connect to this machine or its network.
    let isPublicOnly: Bool
    /// Whether passwords are read from `~/.netrc`.
    let usesNetrc: Bool
    /// The offset at which to resume; 0 requests the whole file.
    let offset: Int
    /// The transfer resumes only if the server's file still has this tag.
    let ifRange: String?
    /// The server sends no body if its file still has this tag.
    let ifNoneMatch: String?
    /// Whether caches must ask the server whether their copy is current.
    let isFresh: Bool
    /// Seconds after which to give up on a server that does not respond or is slower than `minimumRate`.
    let patience: Int
    /// The speed in bytes per second below which to give up.
    let minimumRate: Int
    /// The time limit for the whole transfer, in seconds.
    let deadline: Int
    /// The maximum speed in bytes per second; 0 means no limit.
    let bandwidth: Int

    /// What proves to certain servers who the client is.
    struct Client {
        /// URLs with the hosts and ports for which the proof is meant.
        let places: [String]
        /// PEM texts.
        let certificate: String?
        let key: String?
        let headers: [String]

        init(_ fields: Fields) throws {
            places = try fields.optionalStrings("places") ?? []
            certificate = try fields.optionalString("certificate")
            key = try fields.optionalString("key")
            headers = try fields.optionalStrings("headers") ?? []
        }

        func prepare(_ curl: borrowing Handle) throws {
            if let certificate { try curl.set(CURLOPT_SSLCERT_BLOB, blob: certificate) }
            if let key { try curl.set(CURLOPT_SSLKEY_BLOB, blob: key) }
        }
    }

    static let fileNumber: Int32 = 3
    static let largest = 1 << 22

    init(_ json: JSON) throws {
        let fields = try Fields(json) { place, why, now in
            MoultError(.json, what: "the request: \(place) \(why)", now: now)
        }
        url = try fields.string("url")
        method = try fields.word("method", Method.self) ?? .get
        accept = try fields.optionalString("accept")
        contentType = try fields.optionalString("contentType")
        text = try fields.optionalString("text")
        let bodyOffset = try fields.optionalCount("bodyOffset") ?? 0
        file = try fields.optionalCount("bodySize").map { bodyOffset..<bodyOffset + $0 }
        authorization = try fields.optionalString("authorization")
        client = try fields.optionalObject("client").map { try Client($0) }
        authority = try fields.optionalString("authority") ?? url
        isPublicOnly = try fields.optionalBool("isPublicOnly") ?? false
        usesNetrc = try fields.optionalBool("usesNetrc") ?? true
        offset = try fields.count("offset")
        ifRange = try fields.optionalString("ifRange")
        ifNoneMatch = try fields.optionalString("ifNoneMatch")
        isFresh = try fields.optionalBool("isFresh") ?? false
        patience = try fields.count("patience")
        minimumRate = try fields.count("minimumRate")
        deadline = try fields.count("deadline")
        bandwidth = try fields.count("bandwidth")
    }
}
