internal import MoultBasics
internal import MoultFiles

/// Writes a response as it arrives: the head as one line of JSON, then each part of the body after a line with its size.
final class Answer {
    private(set) var status = 0
    private var etag: String?
    private var range: String?
    private var length: Int?
    private let url: String
    /// Header fields of registries: the digest of the content, the URL for the rest of an upload, and challenges.
    private var digest: String?
    /// The range of an upload that the registry has received, such as `0-399`.
    private var sent: String?
    private var location: String?
    private var challenges: [String] = []
    /// The first bytes of an error's body.
    private var page: [UInt8] = []
    private var isHeadWritten = false
    /// Whether the transfer was stopped because the error page is too long.
    private(set) var isEnough = false
    private var passed = 0
    /// The seconds that the server asks clients to wait.
    var retryAfter: Int?
    /// Whether the password file was not used because other users can read it.
    var isNetrcExposed = false
    private let reach: Reach
    private var headerSize = 0
    static let largestHeader = 1 << 16
    /// libcurl does not limit the total size of all header lines.
    var isHeaderTooLarge: Bool { headerSize > Self.largestHeader }
    /// Whether the parent has closed the pipe.
    private(set) var isCut = false

    init(to url: String, _ reach: Reach) { (self.url, self.reach) = (url, reach) }

    /// Handles one line of the head; if there are several heads, as after status 100, the last one counts. Returns
    /// false to stop the transfer.
    func header(_ line: String) -> Bool {
        headerSize += line.utf8.count
        read(line)
        return !isHeaderTooLarge
    }

    private func read(_ line: String) {
        if line.hasPrefix("HTTP/") {
            status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            (etag, range, length, digest, location, sent, challenges) = (nil, nil, nil, nil, nil, nil, [])
            return
        }
        guard let colon = line.firstIndex(of: ":") else { return }
        let value = String(line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
        // The values go into one line of JSON and into records of the store, which all have a limit.
        let name = line[..<colon].lowercased()
        let limit = ["location": 8192, "www-authenticate": 4096][name] ?? 512
        guard value.utf8.count <= limit, value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else { return }
        switch name {
        case "etag": etag = value
        case "content-range": range = value
        case "content-length": length = Int(value)
        case "docker-content-digest": digest = value
        case "location": location = Origin.resolve(value, from: url)
        case "www-authenticate": if challenges.count < 4 { challenges.append(value) }
        case "range": sent = value
        default: break
        }
    }

    /// Passes on a part of the body; returns false to stop the transfer.
    func body(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // The body of an error is a page for humans, or has a registry's error code. It is not passed on.
        guard status == 200 || status == 206 else {
            passed += bytes.count
            if page.count < 1 << 13 { page += bytes.prefix(1 << 13) }
            isEnough = passed > 1 << 16
            return !isEnough
        }
        return writeHead() && write(.record(["bytes": bytes.count]), bytes)
    }

    func writeHead() -> Bool {
        if isHeadWritten { return true }
        isHeadWritten = true
        let (offset, total) = place
        let head = JSON.record([
            "status": status, "etag": etag, "offset": offset, "total": total, "retryAfter": retryAfter,
            "isNetrcExposed": isNetrcExposed ? true : nil, "digest": digest, "location": location, "code": code,
            "challenges": challenges.unlessEmpty, "sent": sent, "isLocal": reach.isLocal ? true : nil,
        ])
        return write(head)
    }

    /// The error code of a registry. No other text from the server is passed on.
    private var code: String? {
        // Other servers send HTML.
        guard !page.isEmpty, let json = try? JSON(parsing: page, source: ""),
            let code = json["errors"]?.array?.first?["code"]?.string, (1...64).contains(code.utf8.count),
            code.utf8.allSatisfy({ (0x41...0x5a).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5f })
        else { return nil }
        return code
    }

    /// The offset of the body within the file, and the file's total size, from a field such as `bytes 90-99/100`.
    private var place: (offset: Int, total: Int?) {
        guard status == 206 else { return (0, status == 200 ? length : nil) }
        let numbers = (range ?? "").split { !$0.isNumber }.map { Int($0) }
        guard let first = numbers.first, let offset = first else { return (-1, nil) }
        return (offset, numbers.count == 3 ? numbers[2] : nil)
    }

    private func write(_ message: JSON, _ bytes: UnsafeRawBufferPointer? = nil) -> Bool {
        // If this fails, the parent has ended.
        isCut = (try? ParentChannel.send(message, then: bytes)) == nil
        return !isCut
    }
}
