internal import MoultBasics

/// The subset of JSON Schema in which a step describes its parameters. Unknown keywords are rejected, because ignoring a rule
/// would accept invalid values.
struct ParameterSchema {
    let schema: JSON

    init(_ schema: JSON) { self.schema = schema }

    private static let known: Set<String> = [
        "$schema", "$id", "title", "description", "default", "examples", "type", "properties", "required",
        "additionalProperties", "enum", "const", "items", "minimum", "maximum", "minLength", "maxLength", "minItems",
        "maxItems",
    ]

    var fault: String? {
        guard let members = schema.members else { return schema.bool == nil ? "\(schema.kind) is not a schema" : nil }
        for member in members {
            if !Self.known.contains(member.name) { return "the keyword \"\(visible(member.name))\" is not supported" }
            let inner: [JSON] =
                switch member.name {
                case "properties": (member.value.members ?? []).map(\.value)
                case "items", "additionalProperties": [member.value]
                default: []
                }
            for part in inner { if let fault = ParameterSchema(part).fault { return fault } }
        }
        return nil
    }

    /// Returns the first violation of the schema in a value, with its position; nil if the value is valid.
    func fault(in value: JSON, at place: String) -> String? {
        if schema.bool == false { return "\(place) is not allowed" }
        for rule in schema.members ?? [] { if let fault = fault(rule.name, rule.value, value, place) { return fault } }
        return nil
    }

    private func fault(_ name: String, _ rule: JSON, _ value: JSON, _ place: String) -> String? {
        switch name {
        case "type":
            let types = rule.array?.compactMap(\.string) ?? [rule.string ?? ""]
            return types.contains { Self.isOf($0, value) }
                ? nil : "\(place) must be of type \(types.joined(separator: " or ")), but is \(value.kind)"
        case "enum": return rule.array?.contains(value) == true ? nil : "\(place) must be one of \(rule.line)"
        case "const": return rule == value ? nil : "\(place) must be \(rule.line)"
        case "required":
            guard let members = value.members else { return nil }
            let missing = (rule.array ?? []).compactMap(\.string).first { name in !members.contains { $0.name == name }
            }
            return missing.map { "\(place).\($0) is missing" }
        case "properties":
            for member in value.members ?? [] {
                guard let part = rule[member.name] else { continue }
                if let fault = ParameterSchema(part).fault(in: member.value, at: "\(place).\(member.name)") {
                    return fault
                }
            }
            return nil
        case "additionalProperties":
            for member in value.members ?? [] where schema["properties"]?[member.name] == nil {
                if let fault = ParameterSchema(rule).fault(in: member.value, at: "\(place).\(member.name)") {
                    return fault
                }
            }
            return nil
        case "items":
            for (index, item) in (value.array ?? []).enumerated() {
                if let fault = ParameterSchema(rule).fault(in: item, at: "\(place)[\(index)]") { return fault }
            }
            return nil
        case "minimum": return bound(value, rule) { $0 >= $1 } ? nil : "\(place) must be at least \(rule.line)"
        case "maximum": return bound(value, rule) { $0 <= $1 } ? nil : "\(place) must be at most \(rule.line)"
        case "minLength":
            return length(value, rule) { $0 >= $1 } ? nil : "\(place) is shorter than \(rule.line) characters"
        case "maxLength":
            return length(value, rule) { $0 <= $1 } ? nil : "\(place) is longer than \(rule.line) characters"
        case "minItems":
            return (value.array?.count).map { $0 >= Int(rule.integer ?? 0) } ?? true
                ? nil : "\(place) has too few items"
        case "maxItems":
            return (value.array?.count).map { $0 <= Int(rule.integer ?? 0) } ?? true
                ? nil : "\(place) has too many items"
        default: return nil
        }
    }

    private static func isOf(_ type: String, _ value: JSON) -> Bool {
        switch (type, value) {
        case ("object", .object), ("array", .array), ("string", .string), ("boolean", .bool), ("integer", .integer),
            ("number", .integer), ("number", .number), ("null", .null):
            true
        default: false
        }
    }

    private func bound(_ value: JSON, _ rule: JSON, _ holds: (Double, Double) -> Bool) -> Bool {
        func number(_ json: JSON) -> Double? {
            switch json {
            case .integer(let number): Double(number)
            case .number(let number): number
            default: nil
            }
        }
        guard let value = number(value), let rule = number(rule) else { return true }
        return holds(value, rule)
    }

    private func length(_ value: JSON, _ rule: JSON, _ holds: (Int, Int) -> Bool) -> Bool {
        guard let text = value.string, let limit = rule.integer else { return true }
        return holds(text.unicodeScalars.count, Int(limit))
    }
}
