internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// Gets things from elsewhere: small ones into memory, large ones into a file that can be gone on with.
package struct Transport: Sendable {
    /// How patient it is.
    package struct RetryPolicy: Sendable, Equatable {
        /// Seconds after which a connection is given up that does not exist, or slower than `minimumRate`.
        package var patience = 30
        /// Bytes in a second below which a server is given up; otherwise it could keep the command for months.
        package var minimumRate = 1024
        /// Seconds that one file may take, with all attempts.
        package var fileDeadline = 1800
        /// Bytes in a second; 0 has no bound.
        package var bandwidth = 0
        /// How often something is tried in a row without any progress.
        package var attempts = 4
        /// About how many milliseconds pass before the second attempt; twice as many before each further one.
        package var pause = 500
        package init() {}

        /// Feeds, signatures, lists of keys and manifests are small.
        static let smallFileDeadline = 300
        /// The longest pause that a server may ask for.
        static let longestPause = 120
    }

    let retryPolicy: RetryPolicy
    private var budget: NetworkBudget
    let registries = RegistrySession()
    /// Asked often; ends the transfer by throwing.
    let stopIfAsked: @Sendable () throws -> Void

    package init(
        _ retryPolicy: RetryPolicy = RetryPolicy(), budget: NetworkBudget = NetworkBudget(seconds: 3600),
        stopIfAsked: @escaping @Sendable () throws -> Void = {}
    ) {
        (self.retryPolicy, self.budget, self.stopIfAsked) = (retryPolicy, budget, stopIfAsked)
    }

    /// The same with the part of the time that one of so many servers gets, which can still be asked.
    package func share(of servers: Int) -> Transport {
        var part = self
        part.budget = budget.share(of: servers)
        return part
    }

    /// The answer to a request for a small file.
    package enum Answer: Sendable, Equatable {
        case bytes([UInt8], tag: String?)
        /// It is what the tag stands for.
        case unchanged
        case nothing
    }

    /// Gets something of at most `limit` bytes; with a tag only if it is not what the tag stands for.
    package func read(_ location: Location, limit: Int, unless tag: String? = nil) throws -> Answer {
        switch location {
        case .file(let path):
            if let size = try Files.factsThroughLinks(path)?.size, size > limit { throw Memory.tooLarge(path, limit) }
            return try Files.read(path, limit: limit).map { .bytes($0, tag: nil) } ?? .nothing
        case .web(let url):
            return try patiently(seconds: min(retryPolicy.fileDeadline, RetryPolicy.smallFileDeadline)) { until in
                let sink = Memory(limit: limit, named: "\(url)")
                let head = try WebRequest(url: url, ifNoneMatch: tag)
                    .perform(retryPolicy, until: until, sink, stopIfAsked)
                switch head.status {
                case 200: return .bytes(try sink.whole(head, url), tag: head.tag)
                case 304: return .unchanged
                case 404, 410: return .nothing
                default: throw head.refusal(url)
                }
            }
        case .registry(let file): return try read(file, limit: limit, unless: tag)
        }
    }

    /// Tries again after a pause, as long as the error may pass and time is left.
    func patiently<Result>(
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
                // A bad line that brings a part each time gets there, and a server that drips does not.
                if gained > (failure.isSlow ? retryPolicy.minimumRate * retryPolicy.patience : 0) {
                    attempt = 0
                } else if failure.isSlow {
                    throw failure.error
                }
                attempt += 1
                if attempt >= retryPolicy.attempts { throw failure.error }
                try rest(after: attempt, failure, until)
            }
        }
    }

    /// Anything up to twice as long as the last time, so that those who were truncated together do not come back together;
    /// at least as long as the server asks for, or the error if that is too long.
    private func rest(after attempt: Int, _ failure: Retryable, _ until: ContinuousClock.Instant) throws {
        let most = min(retryPolicy.pause << (attempt - 1), 30_000)
        let asked = failure.pause ?? 0
        guard asked <= RetryPolicy.longestPause else { throw failure.error }
        let pause = max(Int.random(in: most / 2...max(most, 1)), asked * 1000)
        let end = ContinuousClock.now + .milliseconds(pause)
        guard end < until else { throw failure.error }
        while ContinuousClock.now < end {
            try stopIfAsked()
            Pause.milliseconds(20)
        }
    }
}

/// An error after which the same server may be asked again.
struct Retryable: Error {
    let error: MoultError
    /// Seconds that the server asks for.
    var pause: Int?
    /// It was below the minimum rate.
    var isSlow = false

    init(_ error: MoultError, pause: Int? = nil, isSlow: Bool = false) {
        (self.error, self.pause, self.isSlow) = (error, pause, isSlow)
    }
}

/// Waiting for time alone.
enum Pause {
    static func milliseconds(_ count: Int) { usleep(UInt32(count * 1000)) }
}
