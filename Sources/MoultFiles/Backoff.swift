internal import MoultLibc

/// Pauses between the attempts of a process that waits for another one: short at first, then longer, until a deadline.
package struct Backoff {
    private let deadline: ContinuousClock.Instant
    private var microseconds: UInt32 = 1_000

    package init(_ limit: Duration) { deadline = .now + limit }

    /// Sleeps briefly and returns true; after the deadline, returns false without sleeping.
    package mutating func pause() -> Bool {
        guard ContinuousClock.now < deadline else { return false }
        usleep(microseconds)
        microseconds = min(microseconds * 2, 100_000)
        return true
    }
}
