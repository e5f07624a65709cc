internal import MoultBasics

/// How much the quarantine may hold. Above it only caches are removed, monitoring warns, and an update that would keep more is
/// refused: everything else stays until the operator removes it.
package struct QuarantineBudget: Sendable, Equatable {
    /// The size of all sets in bytes.
    package var size = 1 << 34
    /// The number of sets.
    package var count = 1000
    /// The age of the oldest set in seconds; nil if any age is fine.
    package var age: Int?

    init() {}

    init(_ fields: Fields?) throws {
        guard let fields else { return }
        size = try fields.optionalNumber("size", in: 0...Settings.maxBytes) ?? size
        count = try fields.optionalNumber("count", in: 0...1_000_000) ?? count
        age = try fields.optionalNumber("age", in: 1...Settings.maxSeconds)
        try fields.refuseUnknown()
    }

    /// Returns what about these sets is over the budget; nil if nothing is.
    func excess(of sets: [QuarantineShelf.Set], at now: Timestamp = .now) -> String? {
        let bytes = sets.reduce(0) { $0 + $1.size }
        let oldest = sets.map(\.since.seconds).min() ?? now.seconds
        var parts: [String] = []
        if bytes > size { parts.append("it has \(ByteCount(bytes)), and may have \(ByteCount(size))") }
        if sets.count > count { parts.append("it has \(counted(sets.count, "set")), and may have \(count)") }
        if let age, now.seconds - oldest > age {
            let (old, allowed) = (
                durationText(seconds: Double(now.seconds - oldest)), durationText(seconds: Double(age))
            )
            parts.append("its oldest set has been there for \(old), and may be there for \(allowed)")
        }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }

    /// What the operator can do.
    static let advice: Advice =
        "List the sets with \(moult: "quarantine"), export what you need (--export FILE SET), and remove sets (--remove SET). Or raise the limits under \"quarantine\" in moult.json."
}
