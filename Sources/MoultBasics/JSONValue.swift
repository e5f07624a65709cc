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
