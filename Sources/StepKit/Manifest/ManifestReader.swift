internal import MoultBasics

/// Reads the parts of a manifest and collects unknown fields.
struct ManifestReader {
    let form: Manifest.Form
    let source: String
    private(set) var unknown: [(name: String, path: String)] = []

    init(form: Manifest.Form, source: String) {
        self.form = form
        self.source = source
    }

    /// Creates errors that name a place in this manifest.
    var failure: Fields.Failure {
        { [source, form] place, why, now in
            MoultError(
                .manifest, what: "\(source): \(place) \(why)",
                now: now
                    ?? (form == .draft
                        ? "Correct the draft. To see its fields: moult help draft"
                        : "Copy or download the manifest again, or pack the release again."))
        }
    }

    mutating func manifest(_ fields: Fields) throws -> Manifest {
        let format = try fields.integer("manifest")
        guard format == Manifest.format else {
            throw fields.fail(
                "manifest", "is format \(format), and this version of moult reads format \(Manifest.format)",
                now: format > Manifest.format ? "Install a newer moult." : nil)
        }
        let product = try fields.string("product")
        if let fault = PlainName.productFault(product) { throw fields.fail("product", "\"\(product)\" \(fault)") }
        // Editors use this field to find the schema of a draft.
        if form == .draft { _ = try fields.optionalString("$schema") }
        var manifest = Manifest(
            product: product,
            version: try version(fields, "version"),
            sequence: try sealed(fields, "sequence", orDraft: 0) { try $0.count($1) },
            created: try fields.optionalTime("created"),
            expires: try fields.optionalTime("expires"),
            sqlite: try fields.optionalString("sqlite"),
            critical: try fields.optionalStrings("critical") ?? [],
            requires: try requires(fields),
            bundle: try bundle(fields),
            patches: try patches(fields),
            databases: try fields.named("databases").map { try database($0.name, $0.fields) },
            checks: try checks(fields),
            budget: try budget(fields),
            steps: try steps(fields),
            warnings: [])
        try done(fields)
        try refuse(unknownAmong: manifest.critical, fields)
        manifest.warnings = unknown.map {
            "\(source): \($0.path) is not known to this version of moult and was ignored"
        }
        try ManifestRules(form: form, fields: fields).check(manifest)
        return manifest
    }

    /// Throws if a draft has an unknown field, which is a typo. Collects the unknown fields of a sealed manifest, which may
    /// come from a newer version of moult.
    mutating func done(_ fields: Fields) throws {
        if form == .draft { try fields.refuseUnknown() }
        unknown += fields.unknown
    }

    /// The advice if a field is missing that only drafts may omit.
    static let sealing = "To make a release from a draft: moult pack"

    /// Reads a field that `pack` adds; it is optional in a draft.
    func sealed<Value>(
        _ fields: Fields, _ name: String, orDraft value: Value, _ read: (Fields, String) throws -> Value
    ) throws -> Value {
        if fields.json(name) != nil { return try read(fields, name) }
        guard form == .draft else { throw fields.fail(name, "is missing", now: Self.sealing) }
        return value
    }

    private func refuse(unknownAmong critical: [String], _ fields: Fields) throws {
        for name in critical {
            if let field = unknown.first(where: { $0.name == name || $0.path == name }) {
                throw fields.fail(
                    field.path, "is not known to this version of moult, and the manifest says that it is critical",
                    now: "Install a newer moult.")
            }
        }
    }

    func version(_ fields: Fields, _ name: String) throws -> Version {
        let text = try fields.string(name)
        guard let version = Version(text) else {
            throw fields.fail(name, "\"\(text)\" is not a SemVer version", now: "For example: 2.1.0.")
        }
        // The version is part of the name of a generation, and file systems limit the length of names.
        guard text.utf8.count <= 128 else { throw fields.fail(name, "is longer than 128 characters") }
        return version
    }

    /// Returns a number of bytes. It is at most the maximum size of a SQLite database, so that sums never overflow.
    func size(_ fields: Fields, _ name: String) throws -> Int {
        let size = try fields.count(name)
        guard size <= 1 << 48 else { throw fields.fail(name, "must be at most \(1 << 48), but is \(size)") }
        return size
    }

    func sha256(_ fields: Fields, _ name: String) throws -> String {
        let text = try fields.string(name)
        guard text.utf8.count == 64, text.utf8.allSatisfy(Self.isHex) else {
            throw fields.fail(name, "must be 64 hexadecimal digits in lower case")
        }
        return text
    }

    static func isHex(_ byte: UInt8) -> Bool { Version.isDigit(byte) || (0x61...0x66).contains(byte) }

    func plainName(_ fields: Fields, _ name: String) throws -> String {
        let text = try fields.string(name)
        if let fault = PlainName.fault(text) { throw fields.fail(name, "\"\(text)\" \(fault)") }
        return text
    }

    private mutating func requires(_ fields: Fields) throws -> Manifest.Requires {
        guard let part = try fields.optionalObject("requires") else { return .init() }
        func range(_ name: String) throws -> VersionRange? {
            guard let text = try part.optionalString(name) else { return nil }
            guard let range = VersionRange(text) else {
                throw part.fail(
                    name, "\"\(text)\" is not a version range",
                    now: "For example: \">=1.4 <3\", \"^2.1\" or \"~2.1.3\".")
            }
            return range
        }
        let requires = Manifest.Requires(app: try range("app"), moult: try range("moult"), from: try range("from"))
        try done(part)
        return requires
    }
}
