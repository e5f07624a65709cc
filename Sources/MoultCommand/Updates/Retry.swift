internal import Moult
internal import MoultBasics
internal import MoultLibc

/// Retries while the exit status would be 75, so that timers report only faults that last.
enum Retry {
    static let option = Option(
        "retry", value: .number("SECONDS", in: 0...604_800), "How long to retry before exiting with 75")

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

/// Delays a request, so that the timers of many machines do not send theirs at the same moment.
enum Spread {
    static let option = Option(
        "spread", value: .number("SECONDS", in: 0...86_400), "Delay by up to SECONDS to spread the load")

    /// Waits, unless a user is at a terminal or this is the first installation.
    static func wait(_ call: Call) throws {
        guard let seconds = call.number(option), seconds > 0, !StandardInput.isTerminal else { return }
        // The only possible error is that the store is missing. With --create, the command creates it now; otherwise it fails
        // later.
        guard (try? call.namedStore()) != nil else { return }
        let end = ContinuousClock.now + .milliseconds(try call.orchestrator().pause(within: seconds))
        // A signal ends the process here, because nothing has started yet.
        while ContinuousClock.now < end { usleep(50_000) }
    }
}
