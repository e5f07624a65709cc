internal import CLinux
internal import Glibc
internal import MoultBasics

/// The answer while it comes: its head as one line of JSON, then its body.
final class Answer {
    private(set) var status = 0
    private var etag: String?
    private var range: String?
    private var length: Int?
    private var isHeadWritten = false
    /// More of an error's page came than anybody reads.
    private(set) var isEnough = false
    private var passed = 0
    /// Seconds after which the server wants to be asked again.
    var retryAfter: Int?
    /// The file of passwords was left alone because other users can read it.
    var isNetrcOpen = false
    private var headerSize = 0
    static let largestHeader = 1 << 16
    /// libcurl has no limit for all lines together.
    var isHeaderTooLarge: Bool { headerSize > Self.largestHeader }
    /// errno of the write that failed.
    private(set) var failure: Int32 = 0

    /// One line of the head; of several heads, as after a status 100, the last counts. False to end it there.
    func header(_ line: String) -> Bool {
        headerSize += line.utf8.count
        read(line)
        return !isHeaderTooLarge
    }

    private func read(_ line: String) {
        if line.hasPrefix("HTTP/") {
            status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            (etag, range, length) = (nil, nil, nil)
            return
        }
        guard let colon = line.firstIndex(of: ":") else { return }
        let value = String(line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
        switch line[..<colon].lowercased() {
        case "etag": etag = value
        case "content-range": range = value
        case "content-length": length = Int(value)
        default: break
        }
    }

    /// False if the parent no longer reads it.
    func body(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // The body of an error is a page for people.
        guard status == 200 || status == 206 else {
            passed += bytes.count
            isEnough = passed > 1 << 16
            return !isEnough
        }
        return writeHead() && write(bytes)
    }

    func writeHead() -> Bool {
        if isHeadWritten { return true }
        isHeadWritten = true
        let (offset, total) = place
        let head = JSON.compact([
            "status": .size(status), "etag": .optional(etag), "offset": .size(offset), "total": total.map { .size($0) },
            "retryAfter": retryAfter.map { .size($0) }, "isNetrcOpen": isNetrcOpen ? true : nil,
        ])
        return Array((head.line + "\n").utf8).withUnsafeBytes(write)
    }

    /// Where the body begins in the whole, and how large the whole is: `bytes 90-99/100`.
    private var place: (offset: Int, total: Int?) {
        guard status == 206 else { return (0, status == 200 ? length : nil) }
        let numbers = (range ?? "").split { !$0.isNumber }.map { Int($0) }
        guard let first = numbers.first, let offset = first else { return (-1, nil) }
        return (offset, numbers.count == 3 ? numbers[2] : nil)
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(STDOUT_FILENO, rest.baseAddress, rest.count)
            if count < 0, moult_errno() == EINTR { continue }
            guard count > 0 else {
                failure = moult_errno()
                return false
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        return true
    }
}
