internal import MoultBasics
internal import MoultLibc
internal import StepKit

/// Returns the error for a change to a feed that stores would refuse, or that would lose a change of another publisher.
func refusal(_ what: String, _ why: String, _ now: Advice? = nil) -> MoultError {
    MoultError(.publishing, .refused, what: what, why: why, now: now)
}

/// Runs the body, and again for up to `seconds` as long as another publisher is faster.
func retryingRace<Result>(seconds: Int, _ body: () throws -> Result) throws -> Result {
    let until = ContinuousClock.now + .seconds(seconds)
    while true {
        do { return try body() } catch let error as MoultError where error.outcome == .busy && error.code == .publishing
        {
            // A random pause, so that the same publishers do not meet again.
            let pause = Duration.milliseconds(Int.random(in: 100...2000))
            guard ContinuousClock.now + pause < until else { throw error }
            usleep(UInt32(pause / .microseconds(1)))
        }
    }
}

extension Version {
    /// The advice for a release whose version differs from another one only in its build metadata: no store would update to it.
    var adviceOnBuildMetadata: Advice {
        "Build metadata, the part after \"+\", does not make a version newer. Choose a higher version, such as "
            + "\(Version(major, minor, patch + 1)), for the release."
    }
}
