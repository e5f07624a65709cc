package import MoultBasics
internal import MoultFiles
internal import MoultLibc

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
    private let proof: ClientProof?
    /// Called often; throws to stop the transfer.
    let stopIfAsked: @Sendable () throws -> Void

    /// `proof`: what proves to the servers who this client is. `earlier`: another transport of the same command, whose connections and tokens this one uses.
    package init(
        _ retryPolicy: RetryPolicy = RetryPolicy(), budget: NetworkBudget = NetworkBudget(seconds: 3600),
        proof: ClientProof? = nil, after earlier: Transport? = nil,
        stopIfAsked: @escaping @Sendable () throws -> Void = {}
    ) {
        (self.retryPolicy, self.budget, self.proof, self.stopIfAsked) = (retryPolicy, budget, proof, stopIfAsked)
        (registries, helper) = (earlier?.registries ?? RegistrySession(), earlier?.helper ?? HelperProcess())
    }

    /// The bytes that this transport and the earlier ones of the command have received as content.
    package var received: Int { helper.received }

    /// Sends one request, and returns the head of the response.
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
            return try retrying(seconds: min(retryPolicy.fileDeadline, RetryPolicy.smallFileDeadline)) { until in
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
            Pause.milliseconds(20)
        }
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

enum Pause {
    static func milliseconds(_ count: Int) { usleep(UInt32(count * 1000)) }
}
