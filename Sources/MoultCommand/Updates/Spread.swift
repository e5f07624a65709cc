internal import Moult
internal import MoultBasics
internal import MoultLibc

/// Delays a request, so that the timers of many machines do not send theirs at the same moment.
enum Spread {
    static let option = Option(
        "spread", value: .number("SECONDS", in: 0...86_400),
        "Delay by up to SECONDS to spread the load")

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
