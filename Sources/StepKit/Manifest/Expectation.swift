/// The answer that a golden query must give: `>= 7000`, `= 5`, `!= 0`, or a plain text that must be equal.
public struct Expectation: Sendable, Equatable, CustomStringConvertible {
    public enum Relation: String, Sendable {
        case atLeast = ">="
        case atMost = "<="
        case notEqual = "!="
        case above = ">"
        case below = "<"
        case equal = "="
    }

    public let description: String
    public let relation: Relation
    public let value: String

    /// Nil if there is nothing to compare with, or an order is asked of something that is no number.
    public init?(_ text: String) {
        description = text
        let signs: [Relation] = [.atLeast, .atMost, .notEqual, .above, .below, .equal]
        relation = signs.first { text.hasPrefix($0.rawValue) } ?? .equal
        let hasSign = text.hasPrefix(relation.rawValue)
        var rest = Substring(text).dropFirst(hasSign ? relation.rawValue.count : 0)
        if hasSign { while rest.first == " " { rest.removeFirst() } }
        value = String(rest)
        let ordered = relation != .equal && relation != .notEqual
        if value.isEmpty && hasSign || ordered && Double(value) == nil { return nil }
    }

    /// Whether an answer, as text, is what was expected; numbers are compared as numbers.
    public func isMet(by answer: String) -> Bool {
        if let number = Double(answer), let wanted = Double(value) {
            return switch relation {
            case .atLeast: number >= wanted
            case .atMost: number <= wanted
            case .above: number > wanted
            case .below: number < wanted
            case .equal: number == wanted
            case .notEqual: number != wanted
            }
        }
        return switch relation {
        case .equal: answer == value
        case .notEqual: answer != value
        case .atLeast, .atMost, .above, .below: false
        }
    }
}

/// How much is allowed: a share of what was there (`20%`), or a number of rows.
public struct Allowance: Sendable, Equatable, CustomStringConvertible {
    public enum Measure: Sendable, Equatable {
        case percent(Double)
        case rows(Int)
    }
    public let measure: Measure

    /// Reads `20%`, `0.5%` or `100`.
    public init?(_ text: String) {
        if text.hasSuffix("%") {
            guard let share = Double(text.dropLast()), share >= 0, share.isFinite else { return nil }
            measure = .percent(share)
        } else {
            guard let rows = Int(text), rows >= 0 else { return nil }
            measure = .rows(rows)
        }
    }

    public func allows(_ change: Int, of total: Int) -> Bool {
        switch measure {
        case .percent(let share): Double(change) * 100 <= share * Double(total)
        case .rows(let rows): change <= rows
        }
    }

    public var description: String {
        switch measure {
        case .percent(let share): share == share.rounded() ? "\(Int(share))%" : "\(share)%"
        case .rows(let rows): "\(rows) rows"
        }
    }
}
