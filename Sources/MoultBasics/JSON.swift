/// A JSON value. Objects keep the order of their members, so that files are written back in the user's order.
public enum JSON: Sendable, Equatable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A 64-bit integer.
    case integer(Int64)
    /// A number with a fraction or an exponent.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSON])
    /// An object, with its members in their original order.
    case object([Member])

    /// A member of an object: a name and a value.
    public struct Member: Sendable, Equatable {
        /// The name.
        public var name: String
        /// The value.
        public var value: JSON
        /// Creates a member of an object.
        public init(_ name: String, _ value: JSON) { (self.name, self.value) = (name, value) }
    }

    /// The value of an object's member; nil if it is missing or this is not an object.
    public subscript(name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name.hasBytes(of: name) }?.value
    }

    /// The string; nil for other types.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The integer; nil for other types.
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    /// The Boolean; nil for other types.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The elements of the array; nil for other types.
    public var array: [JSON]? { if case .array(let value) = self { value } else { nil } }
    /// The members of the object; nil for other types.
    public var members: [Member]? { if case .object(let value) = self { value } else { nil } }

    /// The type of this value, for error messages.
    public var kind: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer: "a whole number"
        case .number: "a decimal number"
        case .string: "a string"
        case .array: "a list"
        case .object: "an object"
        }
    }

    /// Returns this object with one member replaced or appended, or removed if the value is nil.
    public func setting(_ name: String, to value: JSON?) -> JSON {
        var members = self.members ?? []
        if let index = members.firstIndex(where: { $0.name == name }) {
            if let value { members[index].value = value } else { members.remove(at: index) }
        } else if let value {
            members.append(Member(name, value))
        }
        return .object(members)
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSON)...) { self = .object(elements.map { Member($0, $1) }) }

    /// Returns an object with those members that have a value.
    public static func compact(_ members: KeyValuePairs<String, JSON?>) -> JSON {
        .object(members.compactMap { name, value in value.map { Member(name, $0) } })
    }
    /// Returns the text as a JSON value; nil for nil.
    public static func optional(_ value: String?) -> JSON? { value.map { .string($0) } }
    /// Returns a number of bytes or items as a JSON value.
    public static func size(_ value: Int) -> JSON { .integer(Int64(value)) }
}

extension JSON {
    /// This value as text on one line, for journals and event streams.
    public var line: String {
        var text = ""
        write(to: &text, indent: nil)
        return text
    }

    /// This value as text for humans: indented by two spaces, one member per line, ending with a newline.
    public var pretty: String {
        var text = ""
        write(to: &text, indent: 0)
        text += "\n"
        return text
    }

    private func write(to text: inout String, indent: Int?) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        // JSON has no infinity, but many parsers read an excessively large number as infinity. SQLite's shell also writes
        // infinity this way.
        case .number(let value) where value.isInfinite: text += value < 0 ? "-9e999" : "9e999"
        case .number(let value): text += value.isNaN ? "null" : "\(value)"
        case .string(let value): Self.quote(value, to: &text)
        case .array(let values):
            Self.list(values, in: ("[", "]"), to: &text, indent: indent) { value, text, indent in
                value.write(to: &text, indent: indent)
            }
        case .object(let members):
            Self.list(members, in: ("{", "}"), to: &text, indent: indent) { member, text, indent in
                Self.quote(member.name, to: &text)
                text += indent == nil ? ":" : ": "
                member.value.write(to: &text, indent: indent)
            }
        }
    }

    private static func list<Item>(
        _ items: [Item], in brackets: (String, String), to text: inout String, indent: Int?,
        item write: (Item, inout String, Int?) -> Void
    ) {
        text += brackets.0
        let inner = indent.map { $0 + 1 }
        for (index, item) in items.enumerated() {
            if index > 0 { text += "," }
            if let inner { text += "\n" + String(repeating: "  ", count: inner) }
            write(item, &text, inner)
        }
        if let indent, !items.isEmpty { text += "\n" + String(repeating: "  ", count: indent) }
        text += brackets.1
    }

    private static func quote(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where isInvisible(scalar):
                // The values are untrusted, and the output may go to a terminal.
                for unit in String(scalar).utf16 {
                    let hex = String(unit, radix: 16)
                    text += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                }
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

/// A value that can be a member of an object in JSON.
package protocol JSONValue {
    /// The value in JSON.
    var json: JSON { get }
}

extension JSON {
    /// Returns an object with those members that have a value.
    package static func record(_ members: KeyValuePairs<String, (any JSONValue)?>) -> JSON {
        .object(members.compactMap { name, value in value.map { Member(name, $0.json) } })
    }
}

extension JSON: JSONValue {
    package var json: JSON { self }
    /// Nil for an object without members.
    package var unlessEmpty: JSON? { members?.isEmpty == true ? nil : self }
}

extension String: JSONValue {
    package var json: JSON { .string(self) }
}

extension Bool: JSONValue {
    package var json: JSON { .bool(self) }
}

extension Double: JSONValue {
    package var json: JSON { .number(self) }
}

extension FixedWidthInteger where Self: SignedInteger {
    package var json: JSON { .integer(Int64(self)) }
}

extension Int: JSONValue {}
extension Int32: JSONValue {}
extension Int64: JSONValue {}

extension Array: JSONValue where Element: JSONValue {
    package var json: JSON { .array(map(\.json)) }
}

extension Collection {
    /// Nil if the collection is empty, for a member that is then left out.
    package var unlessEmpty: Self? { isEmpty ? nil : self }
}
