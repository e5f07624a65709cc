import MoultFiles
import MoultLibc
import Synchronization

/// Ends the process if a call of SQLite does not return: SQLite cannot be stopped within a single function, which may run for years
/// on a few bytes. Only for a process that may end at any moment, because the next one recovers.
package enum SQLWatchdog {
    /// A call that did not return.
    package struct Finding: Sendable {
        package enum Reason: Sendable {
            /// A request to stop.
            case stop
            /// The limit on the time of a call or of a connection's statements.
            case deadline
        }
        package let path: String
        package let reason: Reason
    }

    /// How long a call may stay in one instruction after a request to stop or after its deadline.
    package static let patience: UInt64 = 2_000_000_000

    private struct Rules {
        let isStopRequested: @Sendable () -> Bool
        let end: @Sendable (Finding) -> Never
    }
    private struct State {
        var rules: Rules?
        var isRunning = false
        var clocks: [ObjectIdentifier: CallClock] = [:]
    }
    private static let state = Mutex(State())

    /// Watches all connections that this process opens from here on. `end` ends the process; it is called in another thread.
    package static func enable(
        isStopRequested: @escaping @Sendable () -> Bool, end: @escaping @Sendable (Finding) -> Never
    ) {
        state.withLock { $0.rules = Rules(isStopRequested: isStopRequested, end: end) }
    }

    /// Starts to watch a connection. The thread starts with the first one, because a process that confines itself must have a
    /// single thread until then.
    static func add(_ clock: CallClock) throws {
        try state.withLock { state in
            guard let rules = state.rules else { return }
            if !state.isRunning {
                try Threads.detach { watch(rules) }
                state.isRunning = true
            }
            state.clocks[ObjectIdentifier(clock)] = clock
        }
    }

    static func remove(_ clock: CallClock) {
        state.withLock { $0.clocks[ObjectIdentifier(clock)] = nil }
    }

    private static func watch(_ rules: Rules) -> Never {
        var all = sigset_t()
        // The main thread gets the signals, so that they end its pauses. Blocking existing signals cannot fail.
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
        var requested: UInt64?
        while true {
            usleep(100_000)
            let now = DeadlineClock.now()
            if requested == nil, rules.isStopRequested() { requested = now }
            let clocks = state.withLock { Array($0.clocks.values) }
            for clock in clocks {
                guard let call = clock.call(now) else { continue }
                // SQLite notices an interrupt more often than it calls the progress handler.
                if call.late != nil || requested != nil && clock.stop?.isRequested == true {
                    clock.interrupter.interrupt()
                }
                guard call.idle >= patience else { continue }
                if let requested, now - requested >= patience {
                    rules.end(Finding(path: clock.path, reason: .stop))
                }
                if let late = call.late, late >= patience { rules.end(Finding(path: clock.path, reason: .deadline)) }
            }
        }
    }
}
