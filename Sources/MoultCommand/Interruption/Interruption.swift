internal import MoultLibc
internal import Synchronization

/// Records the first SIGINT (Ctrl-C), SIGTERM or SIGHUP, without doing anything else.
///
/// A verb with work to undo calls `watch` first, and passes `isRequested` to the long operation, which polls it. A second signal
/// has no effect, because it must not interrupt the undo.
enum Interruption {
    /// The first signal received; 0 if none was.
    private static let signal = Atomic<Int32>(0)

    static var isRequested: Bool { signal.load(ordering: .relaxed) != 0 }

    /// The first signal received; nil if none was.
    static var received: Int32? {
        let number = signal.load(ordering: .relaxed)
        return number == 0 ? nil : number
    }

    /// The name of the received signal, such as "Ctrl-C" or "SIGTERM"; nil if none was received.
    static var name: String? {
        switch received {
        case nil: nil
        case SIGINT: "Ctrl-C"
        case SIGTERM: "SIGTERM"
        case SIGHUP: "SIGHUP"
        case let other?: "signal \(other)"
        }
    }

    /// Records these signals from here on instead of letting them end the process.
    static func watch() {
        // The first access may initialize the flag, which must not happen inside the handler.
        guard !isRequested else { return }
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var old = sigaction()
            // Reading the action of an existing signal cannot fail. A signal that the caller ignores (nohup, a background job)
            // stays ignored.
            guard sigaction(number, nil, &old) == 0, !isIgnored(old) else { continue }
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { number in
                _ = Interruption.signal.compareExchange(expected: 0, desired: number, ordering: .relaxed)
            }
            // System calls are restarted, so that no other code has to handle EINTR; code that waits checks `isRequested`
            // regularly.
            action.sa_flags = SA_RESTART
            _ = sigaction(number, &action, nil)
        }
    }

    static func isIgnored(_ action: sigaction) -> Bool {
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
