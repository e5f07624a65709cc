internal import Moult
internal import MoultBasics
internal import MoultLibc

/// Retries while the exit status would be 75, so that timers report only faults that last.
enum Retry {
    static let option = Option(
        "retry", value: .number("SECONDS", in: 0...604_800),
        "How long to retry before exiting with 75")

    /// The pauses, in seconds, get longer, because each attempt asks programs to release their databases.
    private static let (shortestPause, longestPause) = (60, 900)

    static func run(_ call: Call, _ body: () throws -> Void) throws {
        let end = ContinuousClock.now + .seconds(call.number(option) ?? 0)
        let watcher = call.watcher()
        var pause = shortestPause
        while true {
            do { return try body() } catch let error as MoultError where error.outcome == .busy {
                let left = end - .now
                guard left > .zero else { throw error }
                let next = min(.seconds(pause), left)
                let why = error.why.map { ": \($0)" } ?? ""
                call.output.warn("\(error.what)\(why); trying again in \(max(1, next.components.seconds)) s")
                let start = ContinuousClock.now
                while ContinuousClock.now < start + next {
                    try watcher.stopIfAsked()
                    usleep(50_000)
                }
                pause = min(2 * pause, longestPause)
            }
        }
    }
}
