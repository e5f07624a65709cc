internal import Synchronization

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
