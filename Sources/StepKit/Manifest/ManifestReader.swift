internal import MoultBasics

/// Reads the parts of a manifest and collects unknown fields.
struct ManifestReader {
    let form: Manifest.Form
    let source: String
    /// The names or paths of fields that every reader must know.
    private var critical: [String] = []
    /// The paths of the first unknown fields, and the number of all of them.
    private var unknown: [String] = []
    private var unknownCount = 0

    /// The maximum number of unknown fields with a warning of their own.
    private static let mostWarnings = 20

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
                        ? "Correct the draft. To see its fields: \(moult: "help", "draft")"
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
        critical = try fields.critical()
        var manifest = Manifest(
            product: product,
            version: try version(fields, "version"),
            sequence: try sealed(fields, "sequence", orDraft: 0) { try $0.count($1) },
            created: try fields.optionalTime("created"),
            expires: try fields.optionalTime("expires"),
            notes: try notes(fields),
            sqlite: try fields.optionalString("sqlite"),
            critical: critical,
            requires: try fields.requires(example: "For example: \">=1.4 <3\", \"^2.1\" or \"~2.1.3\".") {
                try done($0)
            },
            bundle: try bundle(fields),
            patches: try patches(fields),
            databases: try fields.named("databases").map { try database($0.name, $0.fields) },
            checks: try checks(fields),
            budget: try budget(fields),
            steps: try steps(fields),
            warnings: [])
        try done(fields)
        manifest.warnings = warnings
        try ManifestRules(form: form, fields: fields).check(manifest)
        return manifest
    }

    private func notes(_ fields: Fields) throws -> String? {
        let notes = try fields.optionalString("notes")
        guard let notes, notes.utf8.count > Manifest.longestNotes else { return notes }
        throw fields.fail("notes", "has \(notes.utf8.count) bytes, and the limit is \(Manifest.longestNotes)")
    }

    /// Throws if a draft has an unknown field, which is a typo, or if an unknown field is critical. Otherwise counts the unknown
    /// fields of a sealed manifest, which may come from a newer version of moult.
    mutating func done(_ fields: Fields) throws {
        if form == .draft { try fields.refuseUnknown() }
        let names = fields.unknown
        if names.isEmpty { return }
        if !critical.isEmpty {
            let place = fields.path("")
            let refused = Set(critical).union(
                critical.filter { $0.hasBytePrefix(place) }.map {
                    String(Substring($0.utf8.dropFirst(place.utf8.count)))
                })
            if let name = names.first(where: refused.contains) {
                throw fields.fail(
                    name, "is not known to this version of moult, and the manifest says that it is critical",
                    now: "Install a newer moult.")
            }
        }
        unknown += names.prefix(max(0, Self.mostWarnings - unknown.count)).map { fields.path($0) }
        unknownCount += names.count
    }

    private var warnings: [String] {
        let rest = unknownCount - unknown.count
        return unknown.map { "\(source): \($0) is not known to this version of moult and was ignored" }
            + (rest > 0
                ? [
                    "\(source): \(counted(rest, "other field")) that this version of moult does not know \(rest == 1 ? "was" : "were") ignored"
                ] : [])
    }

    /// The advice if a field is missing that only drafts may omit.
    static let sealing: Advice = "To make a release from a draft: \(moult: "pack")"

    /// Reads a field that `pack` adds; it is optional in a draft.
    func sealed<Value>(
        _ fields: Fields, _ name: String, orDraft value: Value, _ read: (Fields, String) throws -> Value
    ) throws -> Value {
        if fields.json(name) != nil { return try read(fields, name) }
        guard form == .draft else { throw fields.fail(name, "is missing", now: Self.sealing) }
        return value
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
}
