import MoultBasics

/// A field that a schema declares.
struct DeclaredField {
    let name: String
    /// The path of the declaration in the schema.
    let place: String
    let schema: JSON
}

extension Schema {
    /// Returns all fields that this schema declares, at any level.
    func fields() -> [DeclaredField] { fields(in: root, "") }

    private func fields(in schema: JSON, _ place: String) -> [DeclaredField] {
        Self.structure(of: schema).flatMap { part -> [DeclaredField] in
            let place = place + part.place
            let deeper = fields(in: part.schema, place)
            guard part.place.hasPrefix("/properties/") else { return deeper }
            return [DeclaredField(name: String(part.place.dropFirst(12)), place: place, schema: part.schema)] + deeper
        }
    }

    /// Returns the fields that the schema declares for the object at a path of a document; nil if the object may have
    /// any names.
    func names(at path: String) throws -> Set<String>? {
        var here = [root]
        for part in path.split(separator: "/") {
            here = here.flatMap(Self.alternatives).compactMap { schema in
                if Int(part) != nil { return schema["items"] }
                return schema["properties"]?[String(part)] ?? schema["additionalProperties"]
            }
        }
        let names = here.flatMap(Self.alternatives).flatMap { $0["properties"]?.members ?? [] }.map(\.name)
        return names.isEmpty ? nil : Set(names)
    }

    /// Returns the direct subschemas that describe the structure of a document, not conditions.
    private static func structure(of schema: JSON) -> [(place: String, schema: JSON)] {
        inside(schema).filter { part in
            ["/properties/", "/additionalProperties", "/items"].contains { part.place.hasPrefix($0) }
                || part.place.hasPrefix("/anyOf/") && schema["properties"] == nil
        }
    }

    /// Returns the schema, or its alternatives.
    private static func alternatives(of schema: JSON) -> [JSON] {
        schema["properties"] == nil ? schema["anyOf"]?.array ?? [schema] : [schema]
    }

    /// Returns this schema without a field.
    func without(_ field: DeclaredField) throws -> Schema {
        try Schema(root.edited([.remove(field.place)]))
    }
}
