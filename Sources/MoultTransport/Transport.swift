package import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import Synchronization

/// Gets files from any location: small ones into memory, large ones into a file, so that a download can be resumed.
package struct Transport: Sendable {
    /// When to retry, and when to give up.
    package struct RetryPolicy: Sendable, Equatable {
        /// Seconds after which to give up on a connection that is not established, or that is slower than
        /// `minimumRate`.
        package var patience = 30
        /// Bytes per second below which moult gives up on a server; otherwise it could block the command for months.
        package var minimumRate = 1024
        /// Seconds for one file, including all attempts.
        package var fileDeadline = 1800
        /// Bytes per second; 0 means no limit.
        package var bandwidth = 0
        /// The number of consecutive attempts without progress before moult gives up.
        package var attempts = 4
        /// The approximate pause before the second attempt, in milliseconds. It doubles before each further attempt.
        package var pause = 500
        package init() {}

        /// The time limit for a small file in seconds: feeds, signatures, key lists and manifests are small.
        static let smallFileDeadline = 300
        /// The longest pause that moult accepts from a server, in seconds.
        static let longestPause = 120
    }

    let retryPolicy: RetryPolicy
    private var budget: NetworkBudget
    let registries: RegistrySession
    private let helper: HelperProcess
    private let proof: ClientFiles.Proof?
    /// Called often; throws to stop the transfer.
    let stopIfAsked: @Sendable () throws -> Void

    /// `proof`: what proves to the servers who this client is. `earlier`: another transport of the same command, whose connections and tokens this one uses.
    package init(
        _ retryPolicy: RetryPolicy = RetryPolicy(), budget: NetworkBudget = NetworkBudget(seconds: 3600),
        proof: ClientFiles.Proof? = nil, after earlier: Transport? = nil,
        stopIfAsked: @escaping @Sendable () throws -> Void = {}
    ) {
        (self.retryPolicy, self.budget, self.proof, self.stopIfAsked) = (retryPolicy, budget, proof, stopIfAsked)
        (registries, helper) = (earlier?.registries ?? RegistrySession(), earlier?.helper ?? HelperProcess())
    }

    /// The bytes that this transport and the earlier ones of the command have received as content.
    package var received: Int { helper.received }

    func send(_ request: WebRequest, until: ContinuousClock.Instant, _ sink: any ResponseSink) throws -> WebHead {
        var request = request
        request.proof = proof
        return try request.perform(by: helper, retryPolicy, until: until, sink, stopIfAsked)
    }

    /// Sends a small JSON document to a web server, once.
    package func post(_ json: String, to url: Address, seconds: Int) throws {
        var request = WebRequest(url: url, method: .post, body: .text(json, type: "application/json"))
        request.purpose = "cannot send to \(url)"
        do {
            let head = try send(request, until: .now + .seconds(seconds), IgnoredBody())
            guard (200..<300).contains(head.status) else {
                throw MoultError(.badAnswer, what: "cannot send to \(url)", why: head.why)
            }
        } catch let failure as Retryable { throw failure.error }
    }

    /// Returns the same transport with the time budget for one server, if this many servers can still be tried.
    package func share(of servers: Int) -> Transport {
        var part = self
        part.budget = budget.share(of: servers)
        return part
    }

    /// The response to a request for a small file.
    package enum Answer: Sendable, Equatable {
        case bytes([UInt8], tag: String?)
        /// The file still has the given tag.
        case unchanged
        case nothing
    }

    /// Gets a file of at most `limit` bytes. Returns `unchanged` instead if the server's file still has the given tag.
    package func read(_ location: Location, limit: Int, unless tag: String? = nil) throws -> Answer {
        switch location {
        case .file(let path):
            if let size = try Files.factsThroughLinks(path)?.size, size > limit {
                throw MemorySink.tooLarge(path, limit)
            }
            return try Files.read(path, limit: limit).map { .bytes($0, tag: nil) } ?? .nothing
        case .web(let url):
            return try retryingSmallRequest { until in
                let sink = MemorySink(limit: limit, named: "\(url)")
                let head = try send(WebRequest(url: url, ifNoneMatch: tag, isFresh: true), until: until, sink)
                switch head.status {
                case 200: return .bytes(try sink.whole(head, url), tag: head.tag)
                case 304:
                    guard tag != nil else { throw head.unaskedRefusal(url) }
                    return .unchanged
                case 404, 410: return .nothing
                default: throw head.refusal(url)
                }
            }
        case .registry(let file): return try read(file, limit: limit, unless: tag)
        }
    }

    /// Runs `body`, and again after a pause as long as the error may be temporary and time is left.
    func retrying<Result>(
        seconds: Int, progress: () -> Int = { 0 },
        _ body: (_ until: ContinuousClock.Instant) throws -> Result
    ) throws -> Result {
        try budget.measure {
            let until = ContinuousClock.now + min(.seconds(seconds), budget.left)
            var attempt = 0
            var before = progress()
            while true {
                let failure: Retryable
                do { return try body(until) } catch let error as Retryable {
                    failure = error
                } catch let error as MoultError where error.code == .unreachable {
                    failure = Retryable(error)
                }
                let gained = progress() - before
                before += gained
                // An attempt with progress resets the count, so that a download over a bad line completes. A few bytes from a
                // slow server do not count as progress.
                if gained > (failure.isSlow ? retryPolicy.minimumRate * retryPolicy.patience : 0) {
                    attempt = 0
                } else if failure.isSlow {
                    throw failure.error
                }
                attempt += 1
                if attempt >= retryPolicy.attempts { throw failure.error }
                try pauseBeforeRetry(after: attempt, failure, until)
            }
        }
    }

    /// Waits for a random time, whose limit doubles with each attempt, so that clients that were cut off together do not return
    /// together. The pause is at least as long as the server requests; if that is too long, throws the error.
    private func pauseBeforeRetry(after attempt: Int, _ failure: Retryable, _ until: ContinuousClock.Instant) throws {
        let longest = min(retryPolicy.pause << (attempt - 1), 30_000)
        let asked = failure.pause ?? 0
        guard asked <= RetryPolicy.longestPause else { throw failure.error }
        let pause = max(Int.random(in: longest / 2...max(longest, 1)), asked * 1000)
        let end = ContinuousClock.now + .milliseconds(pause)
        guard end < until else { throw failure.error }
        while ContinuousClock.now < end {
            try stopIfAsked()
            usleep(20_000)
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
}

/// An error after which the same server may be tried again.
struct Retryable: Error {
    let error: MoultError
    /// The seconds that the server asks clients to wait.
    var pause: Int?
    /// Whether the server was below the minimum rate.
    var isSlow = false

    init(_ error: MoultError, pause: Int? = nil, isSlow: Bool = false) {
        (self.error, self.pause, self.isSlow) = (error, pause, isSlow)
    }
}

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
        do { return try send(WebRequest(url: url), until: until, IgnoredBody(endsAtHead: true)) } catch let arrived
            as IgnoredBody.Arrived
        { return arrived.head }
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
            sink.note = { try tag.note($0.tag, of: url) }
            let head = try send(request, until: until, sink)
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

/// The time that a command may spend on the network. Time between requests, for instance for an update, does not count.
///
/// Requests are made one after the other; the mutex is only needed because the compiler cannot know that.
package final class NetworkBudget: Sendable {
    private let limit: Duration
    private let whole: NetworkBudget?
    private let spent = Mutex(Duration.zero)

    package convenience init(seconds: Int) { self.init(.seconds(seconds), of: nil) }

    private init(_ limit: Duration, of whole: NetworkBudget?) { (self.limit, self.whole) = (limit, whole) }

    /// The remaining time; never more than the parent budget has left.
    package var left: Duration {
        let own = limit - spent.withLock { $0 }
        return max(.zero, whole.map { min(own, $0.left) } ?? own)
    }

    /// Returns the budget for one server if this many servers can still be tried, so that a slow server leaves time for the
    /// next.
    package func share(of servers: Int) -> NetworkBudget { NetworkBudget(left / max(1, servers), of: self) }

    func measure<Result>(_ body: () throws -> Result) rethrows -> Result {
        let start = ContinuousClock.now
        defer { spend(ContinuousClock.now - start) }
        return try body()
    }

    private func spend(_ time: Duration) {
        spent.withLock { $0 += time }
        whole?.spend(time)
    }
}
