internal import MoultBasics
internal import MoultFiles

/// Receives the body of a response, piece by piece.
protocol ResponseSink: AnyObject {
    /// Called when the head has arrived; the bytes that follow start at the head's `offset`.
    func begin(_ head: WebHead) throws
    func take(_ bytes: UnsafeRawBufferPointer) throws
}

/// Reads a small body into memory.
final class MemorySink: ResponseSink {
    private let limit: Int
    private let name: String
    private var bytes: [UInt8] = []

    init(limit: Int, named name: String) { (self.limit, self.name) = (limit, name) }

    static func tooLarge(_ name: String, _ limit: Int) -> MoultError {
        MoultError(
            .badAnswer, .refused, what: "\(name) is too large", why: "it is larger than \(ByteCount(limit))",
            now: "Get the file again. If it is still too large, report this to the publisher.")
    }

    func begin(_ head: WebHead) throws {
        bytes = []
        if head.status == 200, let total = head.total, total > limit { throw Self.tooLarge(name, limit) }
    }

    func take(_ part: UnsafeRawBufferPointer) throws {
        guard bytes.count + part.count <= limit else { throw Self.tooLarge(name, limit) }
        bytes += part
    }

    /// Returns the complete body; throws if its length is not the one that the server reported.
    func whole(_ head: WebHead, _ url: Address) throws -> [UInt8] {
        if let total = head.total, total != bytes.count {
            throw MoultError(
                .unreachable, .busy, what: "the download of \(url) was interrupted",
                why: "\(bytes.count) of \(total) bytes arrived",
                now: "Try again later.")
        }
        return bytes
    }
}

/// Discards the body, for requests whose result is in the header.
final class IgnoredBody: ResponseSink {
    /// Ends a request when its head has arrived.
    struct Arrived: Error { let head: WebHead }

    private static let largest = 1 << 16
    private let endsAtHead: Bool
    private var count = 0

    init(endsAtHead: Bool = false) { self.endsAtHead = endsAtHead }

    func begin(_ head: WebHead) throws {
        if endsAtHead { throw Arrived(head: head) }
        count = 0
    }

    func take(_ part: UnsafeRawBufferPointer) throws {
        count += part.count
        guard count <= Self.largest else { throw MemorySink.tooLarge("the body of a response", Self.largest) }
    }
}

/// Writes a large body to a file, starting where the last attempt stopped.
final class PartialFile: ResponseSink {
    let path: String
    let size: Int
    private(set) var received: Int
    private let file: Descriptor
    private let progress: (Int) throws -> Void
    private let name: String
    /// Called with the head of a successful response.
    var note: (WebHead) throws -> Void = { _ in }

    /// Resumes the partial file, or starts again if the file is longer than the complete one.
    init(_ path: String, size: Int, named name: String, progress: @escaping (Int) throws -> Void) throws {
        (self.path, self.size, self.name, self.progress) = (path, size, name, progress)
        file = try Descriptor(path, .append, mode: 0o600)
        received = try file.facts().size
        if received > size { try restart() }
    }

    func restart() throws {
        try file.truncate(to: 0)
        received = 0
    }

    func begin(_ head: WebHead) throws {
        guard head.status == 200 || head.status == 206 else { return }
        try Self.requireSize(size, in: head, of: name)
        if head.offset == received { return try note(head) }
        guard head.offset == 0 else {
            throw MoultError(
                .badAnswer, .failed, what: "the server resumed \(name) at the wrong offset",
                why: "moult requested it from byte \(received), but the response starts at byte \(head.offset)",
                now: "Report this to the operator of the server.")
        }
        try restart()
        try note(head)
    }

    /// Throws if the server reports another size of a file.
    static func requireSize(_ size: Int, in head: WebHead, of name: String) throws {
        guard let total = head.total, total != size else { return }
        throw MoultError(
            .badAnswer, .failed, what: "\(name) does not match the release",
            why: "its size is \(total) bytes on the server, and \(size) bytes in the manifest",
            now: "Try again later; if it happens again, report it to the operator of the server.")
    }

    func take(_ part: UnsafeRawBufferPointer) throws {
        guard received + part.count <= size else {
            throw MoultError(
                .badAnswer, .failed, what: "stopped the transfer of \(name)",
                why: "the server sent more than the \(size) bytes in the manifest",
                now: "Try again later; if it happens again, report it to the operator of the server.")
        }
        try file.write(part)
        received += part.count
        try progress(received)
    }
}
