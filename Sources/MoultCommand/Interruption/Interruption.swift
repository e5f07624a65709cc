internal import MoultLibc
internal import Synchronization

/// The wish of the user or the system that the process ends: SIGINT (Ctrl-C), SIGTERM or SIGHUP, noted and nothing else.
///
/// A verb that must undo calls `watch` before it begins, and hands `isRequested` to the long operation that polls it.
/// A second signal changes nothing: it must not break the undoing.
package enum Interruption {
    /// The signal that came first, 0 before.
    private static let signal = Atomic<Int32>(0)

    package static var isRequested: Bool { signal.load(ordering: .relaxed) != 0 }

    /// The signal that came first; nil if none did.
    package static var received: Int32? {
        let number = signal.load(ordering: .relaxed)
        return number == 0 ? nil : number
    }

    /// "Ctrl-C", "SIGTERM": what came; nil if nothing did.
    package static var name: String? {
        switch received {
        case nil: nil
        case SIGINT: "Ctrl-C"
        case SIGTERM: "SIGTERM"
        case SIGHUP: "SIGHUP"
        case let other?: "signal \(other)"
        }
    }

    /// From now on the signals are noted instead of ending the process.
    package static func watch() {
        // The first access may initialise the flag, and that must not happen inside of the handler.
        guard !isRequested else { return }
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var old = sigaction()
            // Reading the action of a signal that exists cannot fail. One that the caller ignores (nohup, a job in the
            // background) stays ignored.
            guard sigaction(number, nil, &old) == 0, !isIgnored(old) else { continue }
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { number in
                _ = Interruption.signal.compareExchange(expected: 0, desired: number, ordering: .relaxed)
            }
            // Restarted, so that no system call anywhere has to know of this; who waits polls.
            action.sa_flags = SA_RESTART
            _ = sigaction(number, &action, nil)
        }
    }

    static func isIgnored(_ action: sigaction) -> Bool {
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
