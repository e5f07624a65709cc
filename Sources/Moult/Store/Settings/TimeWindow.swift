package import MoultBasics
internal import MoultLibc

/// The time of day in which updates are installed, in the time zone of this machine.
package struct TimeWindow: Sendable, Equatable, CustomStringConvertible {
    /// Minutes after midnight. A window whose end is not after its start extends over midnight.
    private let start: Int
    private let end: Int
    package let description: String

    /// Reads text such as `02:00-05:00`.
    package init?(_ text: String) {
        let times = text.split(separator: "-", omittingEmptySubsequences: false).map { time -> Int? in
            let parts = time.split(separator: ":", omittingEmptySubsequences: false)
            let isTime = parts.count == 2 && parts.allSatisfy { $0.utf8.count == 2 && $0.allSatisfy(\.isWholeNumber) }
            guard isTime, let hour = Int(parts[0]), let minute = Int(parts[1]), hour < 24, minute < 60 else {
                return nil
            }
            return hour * 60 + minute
        }
        guard times.count == 2, let start = times[0], let end = times[1] else { return nil }
        (self.start, self.end, description) = (start, end, text)
    }

    package func isOpen(at now: Timestamp = .now) -> Bool {
        var time = time_t(now.seconds)
        var parts = tm()
        // Without a local time, updates would never be installed.
        guard localtime_r(&time, &parts) != nil else { return true }
        return contains(minute: Int(parts.tm_hour) * 60 + Int(parts.tm_min))
    }

    package func contains(minute: Int) -> Bool {
        start < end ? (start..<end).contains(minute) : minute >= start || minute < end
    }
}
