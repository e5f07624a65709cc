internal import CCurl
internal import CLinux
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

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

    // `WebRequest`, from which the parent makes this object, explains the fields.
    let url: String
    let method: Method
    let accept: String?
    let contentType: String?
    let text: String?
    /// The range of the file on descriptor 3.
    let file: Range<Int>?
    let authorization: String?
    let client: Client?
    let authority: String
    let isPublicOnly: Bool
    let usesNetrc: Bool
    let offset: Int
    let ifRange: String?
    let ifNoneMatch: String?
    let isFresh: Bool
    let patience: Int
    let minimumRate: Int
    /// The time limit for the whole transfer, in seconds.
    let deadline: Int
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

/// The body of a request: text, or a range of the file on descriptor 3, which is read while it is sent.
final class Body {
    private enum Source {
        case bytes([UInt8])
        case file
    }

    private let source: Source
    private var next: Int
    private let end: Int
    /// errno of a failed read.
    private(set) var failure: Int32 = 0

    var size: Int { end - start }
    private let start: Int

    /// Nil if the request has no body.
    init?(_ request: Request) {
        if let text = request.text {
            source = .bytes(Array(text.utf8))
            (start, next, end) = (0, 0, text.utf8.count)
        } else if let part = request.file {
            source = .file
            (start, next, end) = (part.lowerBound, part.lowerBound, part.upperBound)
        } else {
            return nil
        }
    }

    /// Copies the next bytes into the buffer and returns their number: 0 at the end, nil if the file cannot be read.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        let limit = min(buffer.count, end - next)
        guard limit > 0 else { return 0 }
        switch source {
        case .bytes(let bytes):
            bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[next..<next + limit])) }
            next += limit
            return limit
        case .file:
            while true {
                let count = pread(Request.fileNumber, buffer.baseAddress, limit, off_t(next))
                if count < 0, moult_errno() == EINTR { continue }
                guard count > 0 else {
                    failure = count < 0 ? moult_errno() : EIO
                    return nil
                }
                next += count
                return count
            }
        }
    }
}
