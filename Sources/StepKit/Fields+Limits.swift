internal import MoultBasics

// Fields whose size is limited, because readers compare each item with other parts of the document.
extension Fields {
    /// The maximum number of critical fields.
    private static let mostCritical = 100
    /// The maximum length of the name of a critical field, or of its path.
    private static let longestCritical = 256

    /// Reads `critical`: the names or paths of fields that every reader must know.
    func critical() throws -> [String] {
        let names = try optionalStrings("critical") ?? []
        guard names.count <= Self.mostCritical else {
            throw fail("critical", "must have at most \(Self.mostCritical) names, but has \(names.count)")
        }
        for (index, name) in names.enumerated() where name.utf8.count > Self.longestCritical {
            throw fail("critical[\(index)]", "is longer than \(Self.longestCritical) characters")
        }
        return names
    }

    /// Reads `requires`. Calls `done` with its fields when all are read.
    func requires(example: Advice? = nil, done: (Fields) throws -> Void = { _ in }) throws -> Manifest.Requires {
        guard let part = try optionalObject("requires") else { return .init() }
        func range(_ name: String) throws -> VersionRange? {
            guard let text = try part.optionalString(name) else { return nil }
            guard text.utf8.count <= VersionRange.longest else {
                throw part.fail(name, "is longer than \(VersionRange.longest) characters")
            }
            guard let range = VersionRange(text) else {
                throw part.fail(name, "\"\(text)\" is not a version range", now: example)
            }
            return range
        }
        let requires = Manifest.Requires(app: try range("app"), moult: try range("moult"), from: try range("from"))
        try done(part)
        return requires
    }
}
