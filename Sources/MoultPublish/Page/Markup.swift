internal import MoultBasics

/// A piece of HTML: literals are inserted as they are, and every interpolated text is escaped.
package struct Markup: ExpressibleByStringInterpolation {
    package private(set) var text: String

    package init(stringLiteral text: String) { self.text = text }
    package init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }
    package init(_ parts: [Markup]) { text = parts.map(\.text).joined() }

    package static func += (page: inout Markup, more: Markup) { page.text += more.text }

    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        package init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

        package mutating func appendLiteral(_ literal: String) { text += literal }
        package mutating func appendInterpolation(_ markup: Markup) { text += markup.text }
        package mutating func appendInterpolation(_ parts: [Markup]) { parts.forEach { text += $0.text } }
        package mutating func appendInterpolation(_ number: Int) { text += grouped(number) }
        /// Appends a number without thousands separators, for attributes and drawings.
        package mutating func appendInterpolation(plain number: Int) { text += "\(number)" }
        /// Appends escaped text. Names and values are untrusted: they must not act as markup, or change the direction of the
        /// text.
        package mutating func appendInterpolation(_ string: String) {
            for character in visible(string).unicodeScalars {
                switch character {
                case "<": text += "&lt;"
                case ">": text += "&gt;"
                case "&": text += "&amp;"
                case "\"": text += "&quot;"
                case "'": text += "&#39;"
                default: text.unicodeScalars.append(character)
                }
            }
        }
    }
}

/// Returns a number with thousands separators: `1,234,567`.
func grouped(_ number: Int) -> String {
    let digits = Array(String(number.magnitude))
    let groups = digits.indices.map { index in
        index > 0 && (digits.count - index).isMultiple(of: 3) ? ",\(digits[index])" : String(digits[index])
    }
    return (number < 0 ? "-" : "") + groups.joined()
}

/// Returns a percentage, which is 0 % only for none, and 100 % only for all.
func percentage(_ part: Int, of whole: Int) -> String {
    if part == 0 || whole == 0 { return "0 %" }
    if part >= whole { return "100 %" }
    let tenths = part * 1000 / whole
    if tenths == 0 { return "<0.1 %" }
    return tenths < 100 ? "\(tenths / 10).\(tenths % 10) %" : "\(tenths / 10) %"
}
