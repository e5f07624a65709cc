internal import MoultBasics

/// The expected result of a golden query: `>= 7000`, `= 5`, `!= 0`, or a plain text that must be equal.
public struct Expectation: Sendable, Equatable, CustomStringConvertible {
    /// How the result is compared.
    public enum Relation: String, Sendable {
        /// At least the value.
        case atLeast = ">="
        /// At most the value.
        case atMost = "<="
        /// Not the value.
        case notEqual = "!="
        /// More than the value.
        case above = ">"
        /// Less than the value.
        case below = "<"
        /// Equal to the value.
        case equal = "="
    }

    public let description: String
    /// How the result is compared.
    public let relation: Relation
    /// The value to compare with.
    public let value: String

    /// Parses an expectation; returns nil if the value is missing, if an operator such as `>=` has a value that is not a
    /// number, or if the operator is unknown, such as `==`.
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

    /// Returns whether a result, as text, is the expected one; numbers are compared as numbers.
    public func isMet(by answer: String) -> Bool {
        // Integers first, because a Double cannot represent all of them.
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

    /// Returns a decimal number; nil for other text, including `nan` and `infinity`, which Swift parses as numbers.
    private static func number(_ text: String) -> Double? {
        let isDecimal = text.utf8.allSatisfy { Version.isDigit($0) || "+-.eE".utf8.contains($0) }
        return isDecimal ? Double(text) : nil
    }
}
