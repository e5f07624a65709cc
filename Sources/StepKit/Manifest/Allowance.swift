internal import MoultBasics

/// The amount by which a table may change: a share of the installed rows (`20%`), or a number of rows (`100`).
public struct Allowance: Sendable, Equatable, CustomStringConvertible {
    /// The unit of the limit.
    public enum Measure: Sendable, Equatable {
        /// A share of the installed rows, in millionths: with binary fractions, 0.57 % of 10,000 rows would be less
        /// than 57.
        case share(millionths: Int)
        /// A number of rows.
        case rows(Int)
    }
    /// The limit.
    public let measure: Measure

    /// Reads `20%`, `0.5%` (with up to four decimals) or `100`.
    public init?(_ text: String) {
        func digits(_ part: some StringProtocol, atMost count: Int) -> Int? {
            part.utf8.count <= count && part.utf8.allSatisfy(Version.isDigit) ? Int(part) : nil
        }
        guard text.hasSuffix("%") else {
            guard let rows = digits(text, atMost: 15) else { return nil }
            measure = .rows(rows)
            return
        }
        let parts = text.dropLast().split(separator: ".", omittingEmptySubsequences: false)
        let decimals = parts.count == 2 ? parts[1] : "0"
        guard parts.count <= 2, let whole = digits(parts[0], atMost: 9), digits(decimals, atMost: 4) != nil,
            let part = Int((decimals + "000").prefix(4))
        else { return nil }
        measure = .share(millionths: whole * 10_000 + part)
    }

    /// Returns whether a change of `change` rows is allowed in a table of `total` rows.
    public func allows(_ change: Int, of total: Int) -> Bool {
        switch measure {
        case .share(let millionths): Double(change) * 1_000_000 <= Double(millionths) * Double(total)
        case .rows(let rows): change <= rows
        }
    }

    /// The allowance for people: `20%`, `0.5%`, `100 rows`.
    public var description: String {
        switch measure {
        case .share: written
        case .rows(let rows): counted(rows, "row")
        }
    }

    /// The allowance as it is written in a manifest: `20%`, `0.5%`, `100`.
    var written: String {
        switch measure {
        case .rows(let rows): return "\(rows)"
        case .share(let millionths):
            var decimals = String(millionths % 10_000 + 10_000).dropFirst()
            while decimals.last == "0" { decimals.removeLast() }
            return "\(millionths / 10_000)\(decimals.isEmpty ? "" : "." + decimals)%"
        }
    }
}
