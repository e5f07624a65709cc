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
        let fields = fields
        func text(_ number: Int32, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(text(fields.tm_year + 1900, 4))-\(text(fields.tm_mon + 1, 2))-\(text(fields.tm_mday, 2))T"
            + "\(text(fields.tm_hour, 2)):\(text(fields.tm_min, 2)):\(text(fields.tm_sec, 2))Z"
    }

    private var fields: tm {
        var (fields, seconds) = (tm(), time_t(seconds))
        gmtime_r(&seconds, &fields)
        return fields
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
        var fields = tm()
        (fields.tm_year, fields.tm_mon, fields.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
        let days = Timestamp(seconds: timegm(&fields))
        // 30 February does not exist: converting it back gives a different day.
        guard days.fields.tm_mday == day else { return nil }
        seconds = days.seconds + hour * 3600 + minute * 60 + second
    }
}
