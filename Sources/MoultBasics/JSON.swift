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
        public init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
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
