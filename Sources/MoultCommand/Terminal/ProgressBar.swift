internal import Glibc
internal import Synchronization

/// Shows the progress of one operation on stderr: only on a terminal, only once it has lasted half a second, and at most
/// ten times a second. Any thread may call it.
///
/// Sendable without a promise: all that changes is inside of a mutex.
package final class ProgressBar: Sendable {
    private let console: Console
    private let isShown: Bool
    private let clock: @Sendable () -> Double
    private let state: Mutex<State>

    private struct State {
        /// When the operation began; nil before its first event.
        var start: Double?
        var lastLook = -Double.infinity
        var phase: String?
        var rate = ProgressRate()
    }

    private static let patience = 0.5
    private static let interval = 0.1

    package init(console: Console, quiet: Bool = false, clock: @escaping @Sendable () -> Double = monotonicSeconds) {
        self.console = console
        self.clock = clock
        isShown = console.err.canRedraw && !quiet
        state = Mutex(State())
    }

    /// Takes note of how far the operation is, and draws it when it is time to.
    package func show(_ progress: Progress) {
        guard isShown else { return }
        let now = clock()
        state.withLock { state in
            let start = state.start ?? now
            state.start = start
            let isNewPhase = state.phase != progress.phase
            let isDue = now - state.lastLook >= Self.interval
            guard isNewPhase || isDue else { return }
            if isNewPhase { state.rate = ProgressRate() }
            state.phase = progress.phase
            state.rate.add(done: progress.done, at: now)
            guard isDue else { return }
            state.lastLook = now
            guard now - start >= Self.patience else { return }
            // The window may have changed its size since.
            let terminal = console.errNow
            let line = ProgressLine(progress: progress, rate: state.rate.perSecond, terminal: terminal)
            console.showProgress(line.text.rendered(for: terminal))
        }
    }

    /// Takes the line away; the next event begins a new operation.
    package func end() {
        guard isShown else { return }
        state.withLock { $0 = State() }
        console.clearProgress()
    }
}

/// Seconds on a clock that never jumps.
package func monotonicSeconds() -> Double {
    var time = timespec()
    // Fails only for a clock that does not exist.
    _ = clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
