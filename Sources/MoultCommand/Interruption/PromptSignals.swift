internal import MoultLibc
internal import Synchronization

/// Records signals that would end or stop the process while the terminal hides input, so that the terminal is restored first.
enum PromptSignals {
    /// The first signal received; 0 if none was.
    private static let first = Atomic<Int32>(0)
    private static let numbers = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]

    static var isPending: Bool { first.load(ordering: .relaxed) != 0 }

    /// Runs the body, which returns soon after a signal, then raises the signal again with its normal effect. Returns nil if a
    /// signal was received and the process continues: it was stopped and resumed, or `Interruption` records the signal.
    static func postponing<Result>(_ body: () throws -> Result) throws -> Result? {
        first.store(0, ordering: .relaxed)
        let before = numbers.map { ($0, note($0)) }
        let result: Swift.Result<Result, any Error> = Swift.Result { try body() }
        for case (let number, var action?) in before { _ = sigaction(number, &action, nil) }
        let signal = first.load(ordering: .relaxed)
        guard signal != 0 else { return try result.get() }
        // Fails only for a signal that does not exist.
        _ = raise(signal)
        return nil
    }

    /// Makes the process only record this signal, and returns the previous action. Returns nil if the signal is ignored, and
    /// leaves it ignored.
    private static func note(_ number: Int32) -> sigaction? {
        var old = sigaction()
        // Reading and setting the action of an existing signal cannot fail.
        guard sigaction(number, nil, &old) == 0, !Interruption.isIgnored(old) else { return nil }
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { number in
            _ = PromptSignals.first.compareExchange(expected: 0, desired: number, ordering: .relaxed)
        }
        action.sa_flags = SA_RESTART
        _ = sigaction(number, &action, nil)
        return old
    }
}
