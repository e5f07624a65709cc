import MoultBasics

/// A field that a schema declares.
struct DeclaredField {
    let name: String
    /// Where in the schema it is declared.
    let place: String
    let schema: JSON
}

extension Schema {
    /// All fields that this schema declares, wherever they stand.
    func fields() -> [DeclaredField] { fields(in: root, "") }

    private func fields(in schema: JSON, _ place: String) -> [DeclaredField] {
        Self.structure(of: schema).flatMap { part -> [DeclaredField] in
            let place = place + part.place
            let deeper = fields(in: part.schema, place)
            guard part.place.hasPrefix("/properties/") else { return deeper }
            return [DeclaredField(name: String(part.place.dropFirst(12)), place: place, schema: part.schema)] + deeper
        }
    }

    /// The fields that are declared for the object at a place of a document; nil if its names are free.
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

    /// The schemas inside of one that say of what a document is made, and not only under which condition.
    private static func structure(of schema: JSON) -> [(place: String, schema: JSON)] {
        inside(schema).filter { part in
            ["/properties/", "/additionalProperties", "/items"].contains { part.place.hasPrefix($0) }
                || part.place.hasPrefix("/anyOf/") && schema["properties"] == nil
        }
    }

    /// A schema, or those of which it wants one.
    private static func alternatives(of schema: JSON) -> [JSON] {
        schema["properties"] == nil ? schema["anyOf"]?.array ?? [schema] : [schema]
    }

    /// This schema without a field.
    func without(_ field: DeclaredField) throws -> Schema {
        try Schema(root.edited([.remove(field.place)]))
    }
}
