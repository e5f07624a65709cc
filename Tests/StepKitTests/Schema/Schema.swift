import MoultBasics
import MoultFiles
import TestSupport

/// A JSON Schema of the project. Only keywords that the schemas use are supported; any other keyword is an error.
struct Schema {
    let root: JSON

    enum Keyword: String {
        // Information only for readers and editors
        case schema = "$schema"
        case title, description, `default`, examples, format
        // Keywords that contain schemas
        case definitions = "$defs"
        case reference = "$ref"
        case properties, additionalProperties, propertyNames, items, dependentSchemas
        case anyOf, oneOf, not
        case `if`, then
        // Constraints on a value
        case type, `enum`, const, required, minProperties, pattern, maxLength, minimum, maximum
    }

    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    init(_ root: JSON) throws {
        self.root = root
        try Self.knowsEveryKeyword(of: root, "")
    }

    /// The project's directory `manifests`.
    static let examples = "\(Project.root)/manifests"

    /// Reads `manifests/schema/<name>.schema.json`.
    static func named(_ name: String) throws -> Schema {
        let path = "\(examples)/schema/\(name).schema.json"
        guard let bytes = try Files.read(path, limit: 1 << 20) else { throw Fault(description: "there is no \(path)") }
        return try Schema(JSON(parsing: bytes, source: path))
    }

    /// Returns the schema to which a reference `#/$defs/<name>` points.
    func resolve(_ reference: String) throws -> JSON {
        guard reference.hasPrefix("#/$defs/"), let found = root.at(String(reference.dropFirst())) else {
            throw Fault(description: "\(reference) leads nowhere")
        }
        return found
    }

    /// Returns the direct subschemas of a schema, each with its path.
    static func inside(_ schema: JSON) -> [(place: String, schema: JSON)] {
        (schema.members ?? []).flatMap { member -> [(String, JSON)] in
            switch Keyword(rawValue: member.name) {
            case .definitions, .properties, .dependentSchemas:
                (member.value.members ?? []).map { ("/\(member.name)/\($0.name)", $0.value) }
            case .anyOf, .oneOf: (member.value.array ?? []).enumerated().map { ("/\(member.name)/\($0)", $1) }
            case .additionalProperties, .propertyNames, .items, .not, .if, .then:
                member.value.members == nil ? [] : [("/\(member.name)", member.value)]
            default: []
            }
        }
    }

    private static func knowsEveryKeyword(of schema: JSON, _ place: String) throws {
        for member in schema.members ?? [] where Keyword(rawValue: member.name) == nil {
            throw Fault(description: "\(place)/\(member.name) is a keyword that these tests do not know")
        }
        for part in inside(schema) { try knowsEveryKeyword(of: part.schema, place + part.place) }
    }
}
