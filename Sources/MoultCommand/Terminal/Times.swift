internal import MoultBasics
internal import MoultLibc

extension Timestamp {
    /// Returns the difference from now in everyday words: `3 minutes ago`, `in 5 days`.
    func relative(to now: Timestamp) -> String {
        let distance = abs(now.seconds - seconds)
        if distance < 5 { return "just now" }
        let amount =
            switch distance {
            case ..<60: counted(distance, "second")
            case ..<3600: counted(distance / 60, "minute")
            case ..<86_400: counted(distance / 3600, "hour")
            case ..<(60 * 86_400): counted(distance / 86_400, "day")
            case ..<(730 * 86_400): counted(distance / (30 * 86_400), "month")
            default: counted(distance / (365 * 86_400), "year")
            }
        return self < now ? "\(amount) ago" : "in \(amount)"
    }

    /// The local time: `2026-11-20 11:00:00` in the user's time zone (TZ, otherwise /etc/localtime).
    var local: String {
        var time = time_t(seconds)
        var parts = tm()
        guard localtime_r(&time, &parts) != nil else { return description }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
            + " \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    }

    /// Returns the local time and how long ago that was; in a pipe, ISO 8601, as in JSON.
    func text(for terminal: Terminal, now: Timestamp = .now) -> String {
        terminal.isTerminal ? "\(local) (\(relative(to: now)))" : description
    }
}

/// Returns a countdown: `0:07`, `12:30`, `1:02:03`.
func countdownText(seconds: Int) -> String {
    func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
    let tail = twoDigits(seconds % 60)
    return hours > 0 ? "\(hours):\(twoDigits(minutes)):\(tail)" : "\(minutes):\(tail)"
}
