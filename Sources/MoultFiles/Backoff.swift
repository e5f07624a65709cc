internal import MoultLibc

/// The pauses of a process that waits for another one: short at first, then longer, and never beyond a deadline.
package struct Backoff {
    private let deadline: ContinuousClock.Instant
    private var microseconds: UInt32 = 1_000

    package init(_ limit: Duration) { deadline = .now + limit }

    /// Sleeps briefly; returns false without sleeping after the deadline.
    package mutating func pause() -> Bool {
        guard ContinuousClock.now < deadline else { return false }
        usleep(microseconds)
        microseconds = min(microseconds * 2, 100_000)
        return true
    }
}
