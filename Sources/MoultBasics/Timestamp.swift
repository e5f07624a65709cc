internal import MoultLibc

/// A moment in time with a resolution of one second, written as ISO 8601 in UTC.
public struct Timestamp: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Seconds since 1970-01-01T00:00:00Z.
    public let seconds: Int
    /// Creates a timestamp from seconds since 1970-01-01T00:00:00Z.
    public init(seconds: Int) { self.seconds = seconds }

    /// The present time.
    public static var now: Timestamp { Timestamp(seconds: time(nil)) }

    public static func < (a: Timestamp, b: Timestamp) -> Bool { a.seconds < b.seconds }

    /// `2026-11-20T10:00:00Z`
    public var description: String {
        let (year, month, day) = Self.civil(fromDays: Int((Double(seconds) / 86400).rounded(.down)))
        let rest = seconds - Int((Double(seconds) / 86400).rounded(.down)) * 86400
        func two(_ n: Int) -> String { n < 10 ? "0\(n)" : "\(n)" }
        let y = String(year)
        return String(repeating: "0", count: max(0, 4 - y.count)) + y + "-\(two(month))-\(two(day))T"
            + "\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60))Z"
    }

    /// Parses ISO 8601 in UTC, such as `2026-11-20T10:00:00Z`; nil for other formats.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 20 else { return nil }
        for (index, mark) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "Z")] {
            guard bytes[index] == Unicode.Scalar(mark).map({ UInt8(ascii: $0) }) else { return nil }
        }
        func number(_ range: Range<Int>) -> Int? {
            guard bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return bytes[range].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61
        else { return nil }
        let days = Self.days(year: year, month: month, day: day)
        // 30 February does not exist: converting it back gives a different day.
        guard Self.civil(fromDays: days) == (year, month, day) else { return nil }
        seconds = days * 86400 + hour * 3600 + minute * 60 + second
    }

    // Days since 1970-01-01 in the proleptic Gregorian calendar. Years begin in March here, so that the leap day is the last
    // day of its year.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let y = month <= 2 ? year - 1 : year
        let era = (y >= 0 ? y : y - 399) / 400
        let yearOfEra = y - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(fromDays days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}
