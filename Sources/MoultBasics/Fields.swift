/// Reads the members of one JSON object by name and type, and says exactly where something is wrong.
///
/// A place is written as a path from the root, `databases.food.kind`, so that it can be found in the file.
public struct Fields {
    /// Where the object is, from the root; empty for the root.
    public let place: String
    private let members: [JSON.Member]
    private let known: Known
    private let error: Failure

    /// Turns a place and what is wrong there into the error of the document that is read.
    public typealias Failure = (_ place: String, _ why: String, _ now: String?) -> MoultError

    // The names asked for so far; a class, so that reading a field needs no `inout`.
    private final class Known { var names: [String] = [] }

    /// Reads an object; anything else is an error.
    public init(_ json: JSON, at place: String = "", failure: @escaping Failure) throws {
        guard case .object(let members) = json else {
            throw failure(place.isEmpty ? "the document" : place, "must be an object, is \(json.kind)", nil)
        }
        self.place = place
        self.members = members
        self.known = Known()
        self.error = failure
    }

    /// The full path of a member.
    public func path(_ name: String) -> String { place.isEmpty ? name : "\(place).\(name)" }

    /// The error for a member that is wrong.
    public func fail(_ name: String, _ why: String, now: String? = nil) -> MoultError { error(path(name), why, now) }

    /// The member's raw value, nil if it does not exist.
    public func json(_ name: String) -> JSON? {
        known.names.append(name)
        return members.first { $0.name == name }?.value
    }

    private func value<Value>(_ name: String, _ wanted: String, _ convert: (JSON) -> Value?) throws -> Value? {
        guard let json = json(name) else { return nil }
        guard let value = convert(json) else { throw fail(name, "must be \(wanted), is \(json.kind)") }
        return value
    }

    private func required<Value>(_ name: String, _ value: Value?) throws -> Value {
        guard let value else { throw fail(name, "is missing") }
        return value
    }

    /// A text; nil if it does not exist.
    public func optionalString(_ name: String) throws -> String? { try value(name, "a string") { $0.string } }
    /// A text that must be there.
    public func string(_ name: String) throws -> String { try required(name, optionalString(name)) }
    /// True or false; nil if it does not exist.
    public func optionalBool(_ name: String) throws -> Bool? { try value(name, "true or false") { $0.bool } }

    /// A whole number; nil if it does not exist.
    public func optionalInteger(_ name: String) throws -> Int? {
        try value(name, "a whole number") { $0.integer.map { Int($0) } }
    }
    /// A whole number that must be there.
    public func integer(_ name: String) throws -> Int { try required(name, optionalInteger(name)) }

    /// Counts are below: other programs read no larger whole numbers exactly, and sums of counts do not overflow.
    public static let countLimit = 1 << 53

    /// A number that counts something: not negative.
    public func optionalCount(_ name: String) throws -> Int? {
        guard let number = try optionalInteger(name) else { return nil }
        guard number >= 0 else { throw fail(name, "must not be negative, is \(number)") }
        guard number < Self.countLimit else { throw fail(name, "must be less than 2^53, is \(number)") }
        return number
    }
    /// A number that counts something, and must be there.
    public func count(_ name: String) throws -> Int { try required(name, optionalCount(name)) }

    /// A number from a range; nil if it does not exist.
    public func optionalNumber(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        guard let number = try optionalInteger(name) else { return nil }
        guard range.contains(number) else {
            throw fail(name, "must be from \(range.lowerBound) to \(range.upperBound), is \(number)")
        }
        return number
    }

    /// A list of texts; nil if it does not exist.
    public func optionalStrings(_ name: String) throws -> [String]? {
        guard let values = try value(name, "a list of strings", { $0.array }) else { return nil }
        return try values.enumerated().map { index, json in
            guard let text = json.string else { throw fail("\(name)[\(index)]", "must be a string, is \(json.kind)") }
            return text
        }
    }

    /// The texts of a member that is an object of texts, by their names.
    public func optionalTexts(_ name: String) throws -> [String: String]? {
        guard let members = try value(name, "an object", { $0.members }) else { return nil }
        var texts: [String: String] = [:]
        for member in members {
            guard let text = member.value.string else {
                throw fail("\(name).\(member.name)", "must be a string, is \(member.value.kind)")
            }
            texts[member.name] = text
        }
        return texts
    }

    /// The fields of a member that is an object.
    public func optionalObject(_ name: String) throws -> Fields? {
        guard let json = json(name) else { return nil }
        return try Fields(json, at: path(name), failure: error)
    }
    /// The fields of a member that is an object and must be there.
    public func object(_ name: String) throws -> Fields { try required(name, optionalObject(name)) }

    /// The fields of each object in a list.
    public func objects(_ name: String) throws -> [Fields] {
        guard let values = try value(name, "a list of objects", { $0.array }) else { return [] }
        return try values.enumerated().map { try Fields($1, at: path("\(name)[\($0)]"), failure: error) }
    }

    /// The fields of each member of an object, with the member's name, in order.
    public func named(_ name: String) throws -> [(name: String, fields: Fields)] {
        guard let json = json(name) else { return [] }
        guard case .object(let members) = json else { throw fail(name, "must be an object, is \(json.kind)") }
        return try members.map { ($0.name, try Fields($0.value, at: path("\(name).\($0.name)"), failure: error)) }
    }

    /// A text that must be one of the given words.
    public func word<Word: RawRepresentable & CaseIterable>(_ name: String, _ type: Word.Type) throws -> Word?
    where Word.RawValue == String {
        guard let text = try optionalString(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            let words = Word.allCases.map(\.rawValue)
            let list = words.map { "\"\($0)\"" }.joined(separator: ", ")
            throw fail(name, "must be one of \(list), is \"\(text)\"", now: didYouMean(text, among: words))
        }
        return word
    }

    /// The members that no reader asked for, each with its path.
    public var unknown: [(name: String, path: String)] {
        members.filter { !known.names.contains($0.name) }.map { ($0.name, path($0.name)) }
    }

    /// Refuses members that no reader asked for, with the nearest known name, or all of them if none is near.
    public func refuseUnknown() throws {
        guard let first = unknown.first else { return }
        let names = Set(known.names).sorted()
        throw error(
            first.path, "is not a known field",
            didYouMean(first.name, among: names) ?? "Known fields: \(names.joined(separator: ", ")).")
    }
}
