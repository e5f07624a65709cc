internal import MoultBasics
internal import MoultFiles

extension Transport {
    /// Downloads a large file, and throws unless it has exactly the expected size. `path` keeps a truncated or interrupted
    /// download, which the next attempt resumes. The caller verifies the file's digest, and removes the file if that is wrong.
    /// `progress` gets the number of bytes received.
    package func download(
        _ location: Location, to path: String, size: Int, progress: @escaping (Int) throws -> Void
    ) throws {
        let tag = Tag(path: path)
        if case .file(let file) = location {
            try tag.forget()
            try copy(file, to: path, size: size)
            return try progress(size)
        }
        let sink = try PartialFile(path, size: size, named: "\(location)", progress: progress)
        try retrying(seconds: retryPolicy.fileDeadline, progress: { sink.received }) { until in
            if sink.received == size { return }
            let (head, refusal) = try requestRest(of: location, sink, tag, until)
            switch head.status {
            case 200, 206: break
            case 416:
                // The partial file is not a part of the current file on the server.
                try sink.restart()
                throw cut(location, sink)
            default: throw try refusal()
            }
            if sink.received != size { throw cut(location, sink) }
        }
        try tag.forget()
    }

    /// Throws what a download would throw if the location does not have the file, or one of another size.
    package func requireThere(_ location: Location, size: Int) throws {
        switch location {
        case .file(let file): try Self.requireFile(file, size: size)
        case .web(let url):
            try retryingSmallRequest { until in
                let head = try head(of: url, until: until)
                guard head.status == 200 else { throw head.refusal(url) }
                // Some servers say 0 for every file.
                if head.total != 0 { try PartialFile.requireSize(size, in: head, of: "\(location)") }
            }
        case .registry(let file):
            guard let sha256 = file.sha256, try !has(sha256, in: file.repository, named: "\(location)") else { return }
            throw MoultError(
                .notThere, what: "cannot get \(location)", why: "the registry does not have it",
                now: "Try again later, or report it to the publisher.")
        }
    }

    /// Returns the head of a file. A server may answer only GET, as for a signed URL: then that request ends when the head has arrived.
    private func head(of url: Address, until: ContinuousClock.Instant) throws -> WebHead {
        let head = try send(WebRequest(url: url, method: .head), until: until, IgnoredBody())
        if [200, 404, 410].contains(head.status) { return head }
        do { return try send(WebRequest(url: url), until: until, HeadSink()) } catch let arrived as HeadSink.Arrived {
            return arrived.head
        }
    }

    private static func requireFile(_ file: String, size: Int) throws {
        guard let facts = try Files.factsThroughLinks(file), facts.kind == .file else {
            throw MoultError(
                .notThere, what: "no file at \(file)", why: "the directory does not contain this file",
                now: "Put the file there, or use another mirror.")
        }
        guard facts.size == size else {
            throw MoultError(
                .digest, .refused, what: "\(file) does not match the release",
                why: "the file has \(facts.size) bytes, and the manifest says \(size)",
                now: "Copy the file again: it may be truncated.")
        }
    }

    /// Copies the file from a mirror that is a directory.
    private func copy(_ file: String, to path: String, size: Int) throws {
        try Self.requireFile(file, size: size)
        try Files.remove(path)
        try Files.copy(file, to: path, mode: 0o600)
    }

    /// Requests the rest of the file. Returns the head of the response, and the error to throw if the server refused the
    /// request.
    private func requestRest(
        of location: Location, _ sink: PartialFile, _ tag: Tag, _ until: ContinuousClock.Instant
    ) throws -> (head: WebHead, refusal: () throws -> any Error) {
        switch location {
        case .web(let url):
            let request = WebRequest(url: url, offset: sink.received, ifRange: try tag.of(url))
            let head = try send(request, until: until, ObservingSink(sink) { try tag.note($0.tag, of: url) })
            return (head, { head.refusal(url) })
        case .registry(let file):
            guard let sha256 = file.sha256 else { break }
            let purpose = Purpose(repository: file.repository, writes: false)
            // The content with a given digest never changes, so the range needs no condition.
            var request = WebRequest(url: file.repository.url("blobs/sha256:\(sha256)"), offset: sink.received)
            request.purpose = "cannot get \(location)"
            let head = try ask(request, purpose, until: until, sink)
            return (head, { try refusal(head, purpose, failed: "cannot get \(location)") })
        case .file: break
        }
        throw MoultError(.location, what: "cannot download \(location)", why: "its digest is not known")
    }

    private func cut(_ location: Location, _ sink: PartialFile) -> MoultError {
        MoultError(
            .unreachable, .busy, what: "the download of \(location) was interrupted",
            why: "\(sink.received) of \(sink.size) bytes arrived",
            now: "Try again later: the download resumes where it stopped.")
    }
}

/// The ETag of the partly downloaded file, so that parts of two versions are not combined. The record contains the URL without
/// its secrets: the file is verified by its digest anyway.
private struct Tag {
    let path: String
    private var file: String { "\(path).tag" }

    /// Returns the tag; nil if the partial file came from another location, or if the tag is weak, and so not enough to resume.
    func of(_ url: Address) throws -> String? {
        let text = String(decoding: try Files.read(file, limit: 1 << 20) ?? [], as: UTF8.self)
        let lines = text.split(separator: "\n").map { String($0) }
        guard lines.count == 2, lines[0] == "\(url)", lines[1].hasPrefix("\"") else { return nil }
        return lines[1]
    }

    func note(_ tag: String?, of url: Address) throws {
        guard let tag else { return try forget() }
        if try of(url) == tag { return }
        try Files.replace(file, with: Array("\(url)\n\(tag)\n".utf8), mode: 0o600)
    }

    func forget() throws { try Files.remove(file) }
}

/// A sink that also passes the head of a successful response to a closure.
private final class ObservingSink: ResponseSink {
    private let sink: PartialFile
    private let note: (WebHead) throws -> Void

    init(_ sink: PartialFile, note: @escaping (WebHead) throws -> Void) { (self.sink, self.note) = (sink, note) }

    func begin(_ head: WebHead) throws {
        try sink.begin(head)
        if head.status == 200 || head.status == 206 { try note(head) }
    }
    func take(_ bytes: UnsafeRawBufferPointer) throws { try sink.take(bytes) }
}
