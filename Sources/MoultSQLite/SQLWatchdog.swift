import MoultFiles
import MoultLibc
import Synchronization

/// Ends the process if a call of SQLite does not return: SQLite cannot be stopped within a single function, which may run for years
/// on a few bytes. Only for a process that may end at any moment, because the next one recovers.
package enum SQLWatchdog {
    package struct Finding: Sendable {
        package enum Reason: Sendable {
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
        var mustWait = false
        var clocks: [ObjectIdentifier: CallClock] = [:]
    }
    private static let state = Mutex(State())

    /// Watches all connections that this process opens from here on. `end` ends the process; it is called in another thread. A
    /// process that confines itself later must have a single thread until then, and calls `start` afterwards.
    package static func enable(
        confinesLater: Bool, isStopRequested: @escaping @Sendable () -> Bool,
        end: @escaping @Sendable (Finding) -> Never
    ) {
        state.withLock { state in
            state.rules = Rules(isStopRequested: isStopRequested, end: end)
            state.mustWait = confinesLater
        }
    }

    /// Starts the thread of a process that has confined itself.
    package static func start() {
        state.withLock { state in
            state.mustWait = false
            start(&state)
        }
    }

    private static func start(_ state: inout State) {
        guard let rules = state.rules, !state.isRunning, !state.mustWait else { return }
        // Without a thread for the watchdog, the command still works, and the next connection tries again.
        do { try Threads.detach { watch(rules) } } catch { return }
        state.isRunning = true
    }

    static func add(_ clock: CallClock) {
        state.withLock { state in
            guard state.rules != nil else { return }
            state.clocks[ObjectIdentifier(clock)] = clock
            start(&state)
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
                if let requested, now - requested >= patience { rules.end(Finding(path: clock.path, reason: .stop)) }
                if let late = call.late, late >= patience { rules.end(Finding(path: clock.path, reason: .deadline)) }
            }
        }
    }
}
