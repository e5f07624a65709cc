internal import MoultBasics
internal import MoultLibc

/// Several publishers of the same feed at the same time.
enum PublisherRace {
    /// Runs the body, and again for up to `seconds` as long as another publisher is faster.
    static func retrying<Result>(seconds: Int, _ body: () throws -> Result) throws -> Result {
        let until = ContinuousClock.now + .seconds(seconds)
        while true {
            do { return try body() } catch let error as MoultError
                where error.outcome == .busy && error.code == .publishing
            {
                // A random pause, so that the same publishers do not meet again.
                let pause = Duration.milliseconds(Int.random(in: 100...2000))
                guard ContinuousClock.now + pause < until else { throw error }
                usleep(UInt32(pause / .microseconds(1)))
            }
        }
    }
}
