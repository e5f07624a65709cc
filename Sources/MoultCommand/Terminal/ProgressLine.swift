internal import MoultBasics

/// The single progress line, fitted to the terminal: the least important parts are left out first.
struct ProgressLine {
    let progress: Progress
    let rate: Double?
    let elapsed: Double
    /// Whether the user has asked the command to stop, and it has not stopped yet.
    var isStopping = false
    let terminal: Terminal

    var text: StyledText {
        // The last columns stay free: some terminals wrap there, and "^C^C" must fit on the line.
        let room = (terminal.width ?? 80) - 4
        let phase = isStopping ? "stopping: \(progress.phase)" : progress.phase
        for parts in [
            [percent, amount, speed, timeLeft], [percent, amount, timeLeft], [percent, timeLeft], [percent], [],
        ] {
            let facts = parts.compactMap { $0 }
            let used = displayWidth(phase) + facts.reduce(0) { $0 + 2 + displayWidth($1) }
            if used > room { continue }
            let bar = bar(width: min(room - used - 2, 40))
            return StyledText(phase) + bar + StyledText(facts.map { "  \($0)" }.joined())
        }
        return StyledText(String(phase.prefix(max(0, room))))
    }

    private var fraction: Double? {
        guard let total = progress.total, total > 0 else { return nil }
        return min(1, max(0, Double(progress.done) / Double(total)))
    }

    private func bar(width: Int) -> StyledText {
        guard let fraction, width >= 10 else { return StyledText() }
        let filled = Int(fraction * Double(width))
        let (done, rest) = (terminal.symbols.barDone, terminal.symbols.barRest)
        return "  " + StyledText(String(repeating: done, count: filled), .good)
            + StyledText(String(repeating: rest, count: width - filled), .dim)
    }

    /// The percentage, always three digits wide, because a line that jumps is hard to read.
    private var percent: String? {
        fraction.map { fraction in
            let number = String(Int(fraction * 100))
            return String(repeating: " ", count: 3 - number.count) + number + " %"
        }
    }

    private var amount: String? {
        // If the work cannot be measured, the elapsed time is shown.
        if progress.total == nil, progress.done == 0 { return elapsed < 1 ? nil : countdownText(seconds: Int(elapsed)) }
        switch progress.unit {
        case .bytes:
            let done = ByteCount(progress.done)
            return progress.total.map { "\(done) of \(ByteCount($0))" } ?? "\(done)"
        case .items: return progress.total.map { "\(progress.done) of \($0)" } ?? "\(progress.done)"
        }
    }

    private var speed: String? {
        guard progress.unit == .bytes, let rate, rate > 0 else { return nil }
        return "\(ByteCount(Int(rate)))/s"
    }

    private var timeLeft: String? {
        guard let total = progress.total, let rate, rate > 0, progress.done < total else { return nil }
        let seconds = (Double(total - progress.done) / rate).rounded(.up)
        // An estimate of days is not useful.
        return seconds < 100 * 3600 ? "\(countdownText(seconds: Int(seconds))) left" : nil
    }
}
