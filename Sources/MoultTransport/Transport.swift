internal import Glibc
internal import MoultBasics
internal import MoultFiles

/// Gets things from elsewhere: small ones into memory, large ones into a file that can be gone on with.
package struct Transport: Sendable {
    /// How patient it is.
    package struct RetryPolicy: Sendable, Equatable {
        /// Seconds without a byte after which a connection is given up.
        package var patience = 30
        /// Bytes in a second; 0 has no bound.
        package var bandwidth = 0
        /// How often something is tried in a row without any progress.
        package var attempts = 4
        /// About how many milliseconds pass before the second attempt; twice as many before each further one.
        package var pause = 500
        package init() {}
    }

    let manners: RetryPolicy
    /// Asked often; ends the transfer by throwing.
    let stopIfAsked: @Sendable () throws -> Void

    package init(_ manners: RetryPolicy = RetryPolicy(), stopIfAsked: @escaping @Sendable () throws -> Void = {}) {
        (self.manners, self.stopIfAsked) = (manners, stopIfAsked)
    }

    /// What a place says of something small.
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
            return try patiently(url) {
                let taker = Memory(limit: limit, named: url)
                let head = try WebRequest(url: url, offset: 0, ifRange: nil, ifNoneMatch: tag)
                    .perform(manners, taker, stopIfAsked)
                switch head.status {
                case 200: return .bytes(try taker.whole(head, url), tag: head.tag)
                case 304: return .unchanged
                case 404, 410: return .nothing
                default: throw head.refusal(url)
                }
            }
        }
    }

    /// Does it again, after a while, as long as the error is one that may go away.
    func patiently<Result>(_ url: String, progress: () -> Int = { 0 }, _ body: () throws -> Result) throws -> Result {
        var attempt = 0
        var before = progress()
        while true {
            do { return try body() } catch let error as MoultError {
                guard error.code == .unreachable else { throw error }
                // Whatever came counts: a bad line that brings a part each time gets there.
                if progress() > before { attempt = 0 }
                before = progress()
                attempt += 1
                if attempt >= manners.attempts { throw error }
                try rest(after: attempt)
            }
        }
    }

    /// Anything up to twice as long as the last time, so that those who were cut off together do not come back together.
    private func rest(after attempt: Int) throws {
        let most = min(manners.pause << (attempt - 1), 30_000)
        var left = Int.random(in: most / 2...max(most, 1))
        while left > 0 {
            try stopIfAsked()
            Pause.milliseconds(min(left, 50))
            left -= 50
        }
    }
}

/// Waiting, where there is nothing to wait for but time.
enum Pause {
    static func milliseconds(_ count: Int) { usleep(UInt32(count * 1000)) }
}
