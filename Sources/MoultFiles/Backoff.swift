internal import MoultLibc

/// Pauses between the attempts of a process that waits for another one: short at first, then longer, until a deadline.
package struct Backoff {
    private let deadline: ContinuousClock.Instant
    private var microseconds: UInt32 = 1_000
    private let longest: UInt32

    /// Creates pauses of at most `longest` milliseconds.
    package init(_ limit: Duration, longest: UInt32 = 100) { self.init(until: .now + limit, longest: longest) }

    package init(until deadline: ContinuousClock.Instant, longest: UInt32 = 100) {
        (self.deadline, self.longest) = (deadline, longest * 1_000)
    }

    /// Sleeps briefly and returns true; after the deadline, returns false without sleeping.
    package mutating func pause() -> Bool {
        guard ContinuousClock.now < deadline else { return false }
        usleep(microseconds)
        microseconds = min(microseconds * 2, longest)
        return true
    }
}
