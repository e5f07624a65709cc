internal import MoultFiles
internal import MoultLibc
internal import Synchronization

/// Shows the progress of one operation on stderr. It appears only on a terminal, only after half a second, and is updated at
/// most ten times a second. Any thread may call it.
///
/// Sendable without `@unchecked`: all mutable state is in a mutex.
final class ProgressBar: Sendable {
    private let console: Console
    private let isShown: Bool
    private let isStopping: @Sendable () -> Bool
    private let clock: @Sendable () -> Double
    private let state: Mutex<State>

    private struct State {
        /// When the operation began; nil before its first event.
        var start: Double?
        var lastDraw = -Double.infinity
        var latest: Progress?
        var phaseStart = 0.0
        var rate = ProgressRate()
        /// Whether a thread redraws the bar, to show that long work without events is still running.
        var ticks: Bool
    }

    private static let patience = 0.5
    private static let interval = 0.1

    /// Creates a progress bar. With `ticks`, it is redrawn even without events while the operation lasts.
    init(
        console: Console, quiet: Bool = false, ticks: Bool = false,
        isStopping: @escaping @Sendable () -> Bool = { false },
        clock: @escaping @Sendable () -> Double = monotonicSeconds
    ) {
        self.console = console
        self.isStopping = isStopping
        self.clock = clock
        isShown = console.err.canRedraw && !quiet
        state = Mutex(State(ticks: ticks))
    }

    func show(_ progress: Progress) {
        guard isShown else { return }
        let now = clock()
        state.withLock { state in
            if state.start == nil {
                state.start = now
                startTicking(&state)
            }
            if state.latest?.phase != progress.phase { (state.rate, state.phaseStart) = (ProgressRate(), now) }
            let isNewPhase = state.latest?.phase != progress.phase
            let isDue = now - state.lastDraw >= Self.interval
            state.latest = progress
            if isNewPhase || isDue { state.rate.add(done: progress.done, at: now) }
            if isDue { draw(&state, at: now) }
        }
    }

    /// Removes the line; the next event starts a new operation.
    func end() {
        guard isShown else { return }
        state.withLock { $0 = State(ticks: $0.ticks) }
        console.clearProgress()
    }

    private func draw(_ state: inout State, at now: Double) {
        state.lastDraw = now
        guard let start = state.start, now - start >= Self.patience, let progress = state.latest else { return }
        // The window may have been resized.
        let terminal = console.errNow
        let line = ProgressLine(
            progress: progress, rate: state.rate.perSecond, elapsed: now - state.phaseStart,
            isStopping: isStopping(), terminal: terminal)
        console.showProgress(line.text.rendered(for: terminal))
    }

    private func startTicking(_ state: inout State) {
        guard state.ticks else { return }
        do { try Threads.detach { [self] in while tick() { usleep(100_000) } } } catch {
            // If no thread can be started, only events redraw the bar.
            state.ticks = false
        }
    }

    private func tick() -> Bool {
        let now = clock()
        return state.withLock { state in
            guard state.start != nil else { return false }
            if now - state.lastDraw >= Self.interval { draw(&state, at: now) }
            return true
        }
    }
}

func monotonicSeconds() -> Double {
    var time = timespec()
    // Fails only for a clock that does not exist.
    _ = clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// The speed of a phase over the last few seconds.
struct ProgressRate {
    private var samples: [(time: Double, done: Int)] = []
    private static let window = 5.0
    /// A shorter period gives no meaningful rate.
    private static let shortest = 0.4

    mutating func add(done: Int, at time: Double) {
        if let last = samples.last, done < last.done { samples = [] }
        samples.append((time, done))
        // Keep one sample from before the window, so that the rate covers the whole window.
        while samples.count > 2, samples[1].time < time - Self.window { samples.removeFirst() }
    }

    var perSecond: Double? {
        guard let first = samples.first, let last = samples.last, last.time - first.time >= Self.shortest else {
            return nil
        }
        return Double(last.done - first.done) / (last.time - first.time)
    }
}

/// The progress of a long operation: its phase, and how much of it is done.
struct Progress: Sendable, Equatable {
    /// The current action in a few words: `copy food`.
    var phase: String
    var done: Int
    /// The total amount of work; nil if unknown, for which 0 can be given, too.
    var total: Int?
    var unit: Unit

    enum Unit: Sendable, Equatable {
        case bytes
        /// Countable things: rows, pages, files.
        case items
    }

    init(_ phase: String, done: Int, of total: Int? = nil, unit: Unit = .bytes) {
        self.phase = phase
        self.done = done
        self.total = total == 0 ? nil : total
        self.unit = unit
    }
}
