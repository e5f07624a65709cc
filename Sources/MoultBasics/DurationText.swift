/// Returns a duration in everyday units: `12 ms`, `4.2 s`, `1 min 12 s`, `2 h 5 min`.
package func durationText(seconds: Double) -> String {
    let milliseconds = Int((max(0, seconds) * 1000).rounded())
    if milliseconds < 1000 { return "\(milliseconds) ms" }
    let tenths = (milliseconds + 50) / 100
    if tenths < 100 { return "\(tenths / 10).\(tenths % 10) s" }
    let whole = (milliseconds + 500) / 1000
    switch whole {
    case ..<60: return "\(whole) s"
    case ..<3600: return two(whole / 60, "min", whole % 60, "s")
    case ..<86_400: return two(whole / 3600, "h", whole % 3600 / 60, "min")
    default: return two(whole / 86_400, "d", whole % 86_400 / 3600, "h")
    }
}

private func two(_ large: Int, _ largeUnit: String, _ small: Int, _ smallUnit: String) -> String {
    "\(large) \(largeUnit)" + (small > 0 ? " \(small) \(smallUnit)" : "")
}
