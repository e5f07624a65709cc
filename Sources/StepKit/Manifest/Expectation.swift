internal import MoultBasics

/// The answer that a golden query must give: `>= 7000`, `= 5`, `!= 0`, or a plain text that must be equal.
public struct Expectation: Sendable, Equatable, CustomStringConvertible {
    /// How the answer is compared.
    public enum Relation: String, Sendable {
        /// Not below the value.
        case atLeast = ">="
        /// Not above the value.
        case atMost = "<="
        /// Another one than the value.
        case notEqual = "!="
        /// Above the value.
        case above = ">"
        /// Below the value.
        case below = "<"
        /// The value itself.
        case equal = "="
    }

    public let description: String
    /// How the answer is compared.
    public let relation: Relation
    /// With what it is compared.
    public let value: String

    /// Nil if it has no value to compare with, if it orders something that is not a number, or if the operator is one of
    /// another language, such as `==`.
    public init?(_ text: String) {
        description = text
        let signs: [Relation] = [.atLeast, .atMost, .notEqual, .above, .below, .equal]
        let sign = signs.first { text.hasPrefix($0.rawValue) }
        relation = sign ?? .equal
        guard let sign else {
            value = text
            return
        }
        let rest = text.dropFirst(sign.rawValue.count)
        value = String(rest.drop { $0 == " " })
        if let next = rest.first, "<>=!".contains(next) { return nil }
        if value.isEmpty { return nil }
        if relation != .equal, relation != .notEqual, Self.number(value) == nil { return nil }
    }

    /// Whether an answer, as text, is what was expected; numbers are compared as numbers.
    public func isMet(by answer: String) -> Bool {
        // Whole numbers first: not all of them are a Double.
        if let number = Int(answer), let wanted = Int(value) { return holds(number, wanted) }
        if let number = Self.number(answer), let wanted = Self.number(value) { return holds(number, wanted) }
        return switch relation {
        case .equal: answer.hasBytes(of: value)
        case .notEqual: !answer.hasBytes(of: value)
        case .atLeast, .atMost, .above, .below: false
        }
    }

    private func holds<Number: Comparable>(_ number: Number, _ wanted: Number) -> Bool {
        switch relation {
        case .atLeast: number >= wanted
        case .atMost: number <= wanted
        case .above: number > wanted
        case .below: number < wanted
        case .equal: number == wanted
        case .notEqual: number != wanted
        }
    }

    /// A decimal number; words such as `nan` and `infinity`, which Swift takes for numbers too, are texts.
    private static func number(_ text: String) -> Double? {
        let isDecimal = text.utf8.allSatisfy { Version.isDigit($0) || "+-.eE".utf8.contains($0) }
        return isDecimal ? Double(text) : nil
    }
}
