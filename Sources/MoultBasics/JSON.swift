/// A JSON value whose objects keep the order of their members, so that what users wrote comes back as they wrote it.
public enum JSON: Sendable, Equatable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A whole number of 64 bits.
    case integer(Int64)
    /// A number with a fraction or an exponent.
    case number(Double)
    /// A text.
    case string(String)
    /// A list.
    case array([JSON])
    /// Members in the order in which they were written.
    case object([Member])

    /// A name in an object, and its value.
    public struct Member: Sendable, Equatable {
        /// The name.
        public var name: String
        /// The value.
        public var value: JSON
        /// A member of an object.
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

    /// The text; nil if it is none.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The whole number; nil if it is none.
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    /// True or false; nil if it is neither.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The elements of a list; nil if it is none.
    public var array: [JSON]? { if case .array(let value) = self { value } else { nil } }
    /// The members of an object; nil if it is none.
    public var members: [Member]? { if case .object(let value) = self { value } else { nil } }

    /// What kind of value this is, in the words of an error message.
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

    /// This object with one member set (in its place, or at the end), or taken out where the value is nil.
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

    /// An object of the members that have a value.
    public static func compact(_ members: KeyValuePairs<String, JSON?>) -> JSON {
        .object(members.compactMap { name, value in value.map { Member(name, $0) } })
    }
    /// A text, or nothing.
    public static func optional(_ value: String?) -> JSON? { value.map { .string($0) } }
    /// A number of bytes or things.
    public static func size(_ value: Int) -> JSON { .integer(Int64(value)) }
}
