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

    init(form: Manifest.Form, source: String) { (self.form, self.source) = (form, source) }

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
        let ofNewer = "that this version of moult does not know"
        return unknown.map { "\(source): \($0) is not known to this version of moult and was ignored" }
            + (rest > 0
                ? ["\(source): \(counted(rest, "other field")) \(ofNewer) \(rest == 1 ? "was" : "were") ignored"] : [])
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
        guard isDigest(text) else { throw fields.fail(name, "must be 64 hexadecimal digits in lower case") }
        return text
    }

    static func isHex(_ byte: UInt8) -> Bool { Version.isDigit(byte) || (0x61...0x66).contains(byte) }

    func plainName(_ fields: Fields, _ name: String) throws -> String {
        let text = try fields.string(name)
        if let fault = PlainName.fault(text) { throw fields.fail(name, "\"\(text)\" \(fault)") }
        return text
    }

    mutating func bundle(_ fields: Fields) throws -> Manifest.Bundle? {
        guard let part = try fields.optionalObject("bundle") else { return nil }
        let bundle = Manifest.Bundle(
            file: try plainName(part, "file"),
            size: try sealed(part, "size", orDraft: 0, size),
            sha256: try sealed(part, "sha256", orDraft: "", sha256))
        try done(part)
        return bundle
    }

    mutating func patches(_ fields: Fields) throws -> [Manifest.Patch] {
        let parts = try fields.objects("patches")
        guard parts.count <= Manifest.mostPatches else {
            throw fields.fail("patches", "must have at most \(Manifest.mostPatches) patches, but has \(parts.count)")
        }
        return try parts.map { part in
            let patch = Manifest.Patch(
                member: try part.string("member"), from: try version(part, "from"), base: try content(part, "base"),
                result: try content(part, "result"), file: try plainName(part, "file"), size: try size(part, "size"),
                sha256: try sha256(part, "sha256"))
            try done(part)
            return patch
        }
    }

    private mutating func content(_ fields: Fields, _ name: String) throws -> Manifest.Content? {
        guard let part = try fields.optionalObject(name) else { return nil }
        let content = Manifest.Content(size: try size(part, "size"), sha256: try sha256(part, "sha256"))
        try done(part)
        return content
    }

    mutating func checks(_ fields: Fields) throws -> [Manifest.GoldenQuery] {
        try fields.objects("checks").map { part in
            let text = try part.string("expect")
            guard let expect = Expectation(text) else {
                throw part.fail(
                    "expect", "\"\(text)\" is not an expectation",
                    now:
                        "Write the expected value, or an operator and a value, for example: \"52\", \"= 5\", \"!= 0\" or "
                        + "\">= 7000\" (>=, <=, > and < need a number).")
            }
            let check = Manifest.GoldenQuery(on: try part.string("on"), sql: try part.string("sql"), expect: expect)
            try done(part)
            return check
        }
    }

    mutating func budget(_ fields: Fields) throws -> [Manifest.Budget] {
        try fields.named("budget").map { name, part in
            func allowance(_ key: String) throws -> Allowance? {
                guard let text = try part.optionalString(key) else { return nil }
                guard let allowance = Allowance(text) else {
                    throw part.fail(
                        key, "\"\(text)\" is not an allowance",
                        now: "For example: \"20%\", \"0.5%\" or \"100\" (rows).")
                }
                return allowance
            }
            guard let dot = name.firstIndex(of: "."), name.index(after: dot) < name.endIndex else {
                throw fields.fail(
                    "budget.\(name)", "does not name a table",
                    now: "Write DATABASE.TABLE, for example food.items.")
            }
            let budget = Manifest.Budget(
                database: String(name[..<dot]), table: String(name[name.index(after: dot)...]),
                shrink: try allowance("shrink"), grow: try allowance("grow"))
            try done(part)
            return budget
        }
    }

    mutating func steps(_ fields: Fields) throws -> [Manifest.StepUse] {
        try fields.objects("steps").map { part in
            let before = try part.word("before", Phase.self)
            let after = try part.word("after", Phase.self)
            guard let phase = before ?? after, before == nil || after == nil else {
                throw failure(
                    part.place, "has \(before == nil ? "neither \"before\" nor" : "both \"before\" and") \"after\"",
                    "Choose one phase, for example \"after\": \"copy\".")
            }
            let with = part.json("with") ?? .object([])
            guard with.members != nil else { throw part.fail("with", "must be an object, but is \(with.kind)") }
            let step = Manifest.StepUse(
                step: try plainName(part, "step"), when: before == nil ? .after : .before, phase: phase, with: with)
            try done(part)
            return step
        }
    }
}
