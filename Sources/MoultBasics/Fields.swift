/// Reads the members of a JSON object by name and type, and reports the exact position of faults.
///
/// A position is a path from the root, such as `databases.food.kind`, so that users can find the fault in the file.
public struct Fields {
    /// The position of the object; empty for the root.
    public let place: String
    private let members: [JSON.Member]
    private let known: Known
    private let error: Failure

    /// Turns a position and a fault into the error for the document being read.
    public typealias Failure = (_ place: String, _ why: String, _ now: Advice?) -> MoultError

    // The names read so far. This is a class, so that the methods that read a field need not be mutating.
    // Names are compared as bytes: Swift's comparison takes quadratic time for a name with many combining marks.
    private final class Known {
        private(set) var names: [String] = []
        func insert(_ name: String) { if !contains(name) { names.append(name) } }
        func contains(_ name: String) -> Bool { names.contains { $0.hasBytes(of: name) } }
    }

    /// Reads an object; throws for any other value.
    public init(_ json: JSON, at place: String = "", failure: @escaping Failure) throws {
        guard case .object(let members) = json else {
            throw failure(place.isEmpty ? "the document" : place, "must be an object, but is \(json.kind)", nil)
        }
        (self.place, self.members, known, error) = (place, members, Known(), failure)
    }

    /// Returns the full path of a member.
    public func path(_ name: String) -> String { place.isEmpty ? name : "\(place).\(name)" }

    /// Returns the error for an invalid member.
    public func fail(_ name: String, _ why: String, now: Advice? = nil) -> MoultError { error(path(name), why, now) }

    /// Returns the member's raw value; nil if the member is missing.
    public func json(_ name: String) -> JSON? {
        known.insert(name)
        return members.first { $0.name.hasBytes(of: name) }?.value
    }

    private func value<Value>(_ name: String, _ wanted: String, _ convert: (JSON) -> Value?) throws -> Value? {
        guard let json = json(name) else { return nil }
        guard let value = convert(json) else { throw fail(name, "must be \(wanted), but is \(json.kind)") }
        return value
    }

    private func required<Value>(_ name: String, _ value: Value?) throws -> Value {
        guard let value else { throw fail(name, "is missing") }
        return value
    }

    /// Returns a string; nil if the member is missing.
    public func optionalString(_ name: String) throws -> String? { try value(name, "a string") { $0.string } }
    /// Returns a required string.
    public func string(_ name: String) throws -> String { try required(name, optionalString(name)) }
    /// Returns a Boolean; nil if the member is missing.
    public func optionalBool(_ name: String) throws -> Bool? { try value(name, "true or false") { $0.bool } }

    /// Returns an integer; nil if the member is missing.
    public func optionalInteger(_ name: String) throws -> Int? {
        try value(name, "a whole number") { $0.integer.map { Int($0) } }
    }
    /// Returns a required integer.
    public func integer(_ name: String) throws -> Int { try required(name, optionalInteger(name)) }

    /// Counts must be less than this number: many programs cannot represent larger integers exactly. The limit also keeps sums
    /// of counts from overflowing.
    public static let countLimit = 1 << 53

    /// Returns a count, which cannot be negative; nil if the member is missing.
    public func optionalCount(_ name: String) throws -> Int? {
        guard let number = try optionalInteger(name) else { return nil }
        guard number >= 0 else { throw fail(name, "must not be negative, but is \(number)") }
        guard number < Self.countLimit else { throw fail(name, "must be less than 2^53, but is \(number)") }
        return number
    }
    /// Returns a required count.
    public func count(_ name: String) throws -> Int { try required(name, optionalCount(name)) }

    /// Returns an integer, which must be in the range; nil if the member is missing.
    public func optionalNumber(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        guard let number = try optionalInteger(name) else { return nil }
        guard range.contains(number) else {
            throw fail(name, "must be from \(range.lowerBound) to \(range.upperBound), but is \(number)")
        }
        return number
    }

    /// Returns a list of strings; nil if the member is missing.
    public func optionalStrings(_ name: String) throws -> [String]? {
        guard let values = try value(name, "a list of strings", { $0.array }) else { return nil }
        return try values.enumerated().map { index, json in
            guard let text = json.string else {
                throw fail("\(name)[\(index)]", "must be a string, but is \(json.kind)")
            }
            return text
        }
    }

    /// Returns the string members of an object, by name; nil if the object is missing.
    public func optionalTexts(_ name: String) throws -> [String: String]? {
        guard let members = try value(name, "an object", { $0.members }) else { return nil }
        var texts: [String: String] = [:]
        for member in members {
            guard let text = member.value.string else {
                throw fail("\(name).\(member.name)", "must be a string, but is \(member.value.kind)")
            }
            // Swift treats the two encodings of é as the same name, so one of the values would be lost.
            guard texts.updateValue(text, forKey: member.name) == nil else {
                throw fail(name, "has two members whose names differ only in their Unicode form: \"\(member.name)\"")
            }
        }
        return texts
    }

    /// Returns the fields of an object; nil if the member is missing.
    public func optionalObject(_ name: String) throws -> Fields? {
        guard let json = json(name) else { return nil }
        return try Fields(json, at: path(name), failure: error)
    }
    /// Returns the fields of a required object.
    public func object(_ name: String) throws -> Fields { try required(name, optionalObject(name)) }

    /// Returns the fields of each object in a list; an empty list if the member is missing.
    public func objects(_ name: String) throws -> [Fields] { try objects(name) { $0 } }

    /// Returns what `read` makes of each object in a list, one after another; an empty list if the member is missing.
    package func objects<Result>(_ name: String, _ read: (Fields) throws -> Result) throws -> [Result] {
        guard let values = try value(name, "a list of objects", { $0.array }) else { return [] }
        return try values.enumerated().map { index, json in
            try read(try Fields(json, at: path("\(name)[\(index)]"), failure: error))
        }
    }

    /// Returns the name and fields of each member of an object, in order; an empty list if the object is missing.
    public func named(_ name: String) throws -> [(name: String, fields: Fields)] {
        try (value(name, "an object", \.members) ?? []).map {
            ($0.name, try Fields($0.value, at: path("\(name).\($0.name)"), failure: error))
        }
    }

    /// Returns a string that must be one of the given words; nil if the member is missing.
    public func word<Word: RawRepresentable & CaseIterable>(_ name: String, _ type: Word.Type) throws -> Word?
    where Word.RawValue == String {
        guard let text = try optionalString(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            let words = Word.allCases.map(\.rawValue)
            let list = words.map { "\"\($0)\"" }.joined(separator: ", ")
            throw fail(name, "must be one of \(list), but is \"\(text)\"", now: didYouMean(text, among: words))
        }
        return word
    }

    /// Returns a time in RFC 3339 format; nil if the member is missing.
    public func optionalTime(_ name: String) throws -> Timestamp? {
        guard let text = try optionalString(name) else { return nil }
        guard let time = Timestamp(text) else {
            throw fail(name, "\"\(text)\" is not a time", now: "For example: 2026-11-20T10:00:00Z.")
        }
        return time
    }

    /// The names of the members that were never read. `path` is not applied to them here: the place may be long, and the document
    /// may have very many such members.
    public var unknown: [String] { members.map(\.name).filter { !known.contains($0) } }

    /// Rejects members that were never read. The error suggests the nearest known name, or lists all names if none is near.
    public func refuseUnknown() throws {
        guard let first = members.first(where: { !known.contains($0.name) })?.name else { return }
        let names = known.names.sorted()
        throw error(
            path(first), "is not a known field",
            didYouMean(first, among: names) ?? "Known fields: \(names.joined(separator: ", ")).")
    }
}
