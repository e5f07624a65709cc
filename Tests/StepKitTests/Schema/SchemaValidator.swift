import MoultBasics

/// Checks whether a document matches a schema.
final class SchemaValidator {
    let schema: Schema
    private var patterns: [String: Regex<AnyRegexOutput>] = [:]
    // Most documents in a test have most texts in common, so the results of patterns are kept.
    private var matches: [Match: Bool] = [:]

    private struct Match: Hashable {
        let pattern: String
        let text: String
    }

    init(_ schema: Schema) { self.schema = schema }

    func accepts(_ value: JSON) throws -> Bool { try accepts(value, schema.root) }

    func accepts(_ value: JSON, _ schema: JSON) throws -> Bool {
        // A schema may also be `true` or `false`.
        if let answer = schema.bool { return answer }
        guard let members = schema.members else { throw Schema.Fault(description: "\(schema.kind) is not a schema") }
        for member in members {
            guard let keyword = Schema.Keyword(rawValue: member.name) else {
                throw Schema.Fault(description: "the keyword \(member.name) is not known")
            }
            guard try holds(keyword, member.value, of: schema, for: value) else { return false }
        }
        return true
    }

    private func holds(_ keyword: Schema.Keyword, _ rule: JSON, of schema: JSON, for value: JSON) throws -> Bool {
        switch keyword {
        case .schema, .title, .description, .default, .examples, .format, .definitions, .then: true
        case .reference: try accepts(value, self.schema.resolve(rule.string ?? ""))
        case .properties, .additionalProperties, .propertyNames, .dependentSchemas, .required, .minProperties:
            try value.members.map { try holdsForObject(keyword, rule, of: schema, members: $0) } ?? true
        case .items: try value.array?.allSatisfy { try accepts($0, rule) } ?? true
        case .anyOf: try rule.array?.contains { try accepts(value, $0) } ?? false
        case .oneOf: try rule.array?.filter { try accepts(value, $0) }.count == 1
        case .not: try !accepts(value, rule)
        case .if: try !accepts(value, rule) || accepts(value, schema[Schema.Keyword.then.rawValue] ?? true)
        case .type: Self.isOf(type: rule.string, value)
        case .enum: rule.array?.contains { Self.equal($0, value) } ?? false
        case .const: Self.equal(rule, value)
        case .pattern: try value.string.map { try matches($0, rule.string ?? "") } ?? true
        case .maxLength: value.string.map { $0.unicodeScalars.count <= Self.count(rule) } ?? true
        case .minimum: Self.number(value).map { $0 >= Self.number(rule) ?? 0 } ?? true
        case .maximum: Self.number(value).map { $0 <= Self.number(rule) ?? 0 } ?? true
        }
    }

    private func holdsForObject(
        _ keyword: Schema.Keyword, _ rule: JSON, of schema: JSON, members: [JSON.Member]
    ) throws -> Bool {
        switch keyword {
        case .properties:
            try members.allSatisfy { member in try rule[member.name].map { try accepts(member.value, $0) } ?? true }
        case .additionalProperties:
            try members.allSatisfy { try schema["properties"]?[$0.name] != nil || accepts($0.value, rule) }
        case .propertyNames: try members.allSatisfy { try accepts(.string($0.name), rule) }
        case .dependentSchemas:
            try members.allSatisfy { member in try rule[member.name].map { try accepts(.object(members), $0) } ?? true }
        case .required: rule.array?.allSatisfy { name in members.contains { $0.name == name.string } } ?? false
        case .minProperties: members.count >= Self.count(rule)
        default: true
        }
    }

    private func matches(_ text: String, _ pattern: String) throws -> Bool {
        let match = Match(pattern: pattern, text: text)
        if let known = matches[match] { return known }
        // JSON Schema refers to ECMA-262, which matches code points.
        let regex = try patterns[pattern] ?? Regex(pattern).matchingSemantics(.unicodeScalar)
        patterns[pattern] = regex
        let found = text.contains(regex)
        matches[match] = found
        return found
    }

    private static func isOf(type: String?, _ value: JSON) -> Bool {
        switch (type, value) {
        case ("object", .object), ("array", .array), ("string", .string), ("boolean", .bool), ("integer", .integer):
            true
        case ("integer", .number(let number)): number == number.rounded()
        default: false
        }
    }

    /// Returns whether two values are equal. JSON Schema compares numbers by value.
    private static func equal(_ a: JSON, _ b: JSON) -> Bool {
        if let a = number(a), let b = number(b) { return a == b }
        return a == b
    }

    private static func count(_ rule: JSON) -> Int { rule.integer.map { Int($0) } ?? 0 }

    private static func number(_ value: JSON) -> Double? {
        switch value {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}
