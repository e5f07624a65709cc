public import MoultBasics

extension MoultError.Code {
    /// A manifest that cannot be understood, or contradicts itself.
    public static let manifest = Self(200)
}

extension Manifest {
    /// The largest manifest that is read.
    public static let largest = 1 << 20

    /// Reads and validates a manifest; `source` names it in errors.
    public init(parsing bytes: [UInt8], as form: Form, source: String) throws {
        if bytes.count > Self.largest {
            throw MoultError(
                .manifest, what: "the manifest \(source) is too large",
                why: "\(ByteCount(bytes.count)), and at most \(ByteCount(Self.largest)) is read")
        }
        let json = try JSON(parsing: bytes, as: form == .draft ? .draft : .plain, source: source)
        let fields = try Fields(json) { place, why, now in
            MoultError(.manifest, what: "\(source): \(place) \(why)", now: now)
        }
        var reader = ManifestReader(form: form, source: source)
        self = try reader.manifest(fields)
    }
}

/// Reads the parts of a manifest, and remembers which fields it did not know.
struct ManifestReader {
    let form: Manifest.Form
    let source: String
    private(set) var unknown: [(name: String, path: String)] = []

    init(form: Manifest.Form, source: String) {
        self.form = form
        self.source = source
    }

    mutating func manifest(_ fields: Fields) throws -> Manifest {
        let format = try fields.integer("manifest")
        guard format == Manifest.format else {
            throw fields.fail(
                "manifest", "is format \(format), and this moult reads format \(Manifest.format)",
                now: format > Manifest.format ? "Install a newer moult." : nil)
        }
        let product = try fields.string("product")
        if let fault = Self.productFault(product) { throw fields.fail("product", "\"\(product)\" \(fault)") }
        let critical = try fields.optionalStrings("critical") ?? []
        var manifest = Manifest(
            product: product,
            version: try version(fields, "version"),
            sequence: try form == .sealed ? fields.count("sequence") : fields.optionalCount("sequence") ?? 0,
            created: try timestamp(fields, "created"),
            expires: try timestamp(fields, "expires"),
            requires: try requires(fields),
            bundle: try bundle(fields),
            deltas: try deltas(fields),
            databases: try fields.named("databases").map { try database($0.name, $0.fields) },
            checks: try checks(fields),
            budget: try budget(fields),
            steps: try steps(fields),
            warnings: [])
        try done(fields)
        try refuse(unknownAmong: critical, fields)
        manifest.warnings = unknown.map { "\(source): \($0.path) is not known to this moult and was ignored" }
        try ManifestRules(form: form, fields: fields).check(manifest)
        return manifest
    }

    /// In a draft an unknown field is a slip of the pen; in a sealed manifest it may come from a newer moult.
    mutating func done(_ fields: Fields) throws {
        if form == .draft { try fields.refuseUnknown() }
        unknown += fields.unknown
    }

    private func refuse(unknownAmong critical: [String], _ fields: Fields) throws {
        for name in critical {
            if let field = unknown.first(where: { $0.name == name || $0.path == name }) {
                throw fields.fail(
                    field.path, "is not known to this moult, and the manifest says that it is critical",
                    now: "Install a newer moult.")
            }
        }
    }

    static func productFault(_ text: String) -> String? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count >= 2, parts.allSatisfy({ !$0.isEmpty && PlainName.fault(String($0)) == nil }) else {
            return "must be a reverse-DNS name such as org.example.app"
        }
        return text.utf8.count > 255 ? "is longer than 255 characters" : nil
    }

    func version(_ fields: Fields, _ name: String) throws -> Version {
        let text = try fields.string(name)
        guard let version = Version(text) else {
            throw fields.fail(name, "\"\(text)\" is not a version as SemVer has it", now: "Write it as in 2.1.0.")
        }
        return version
    }

    private func timestamp(_ fields: Fields, _ name: String) throws -> Timestamp? {
        guard let text = try fields.optionalString(name) else { return nil }
        guard let time = Timestamp(text) else {
            throw fields.fail(name, "\"\(text)\" is not a time", now: "Write it as in 2026-11-20T10:00:00Z.")
        }
        return time
    }

    func sha256(_ fields: Fields, _ name: String = "sha256") throws -> String {
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
                    now: "Write it as in \">=1.4 <3\", \"^2.1\" or \"~2.1.3\".")
            }
            return range
        }
        let requires = Manifest.Requires(app: try range("app"), moult: try range("moult"), from: try range("from"))
        try done(part)
        return requires
    }

    private mutating func bundle(_ fields: Fields) throws -> Manifest.Bundle? {
        guard let part = try fields.optionalObject("bundle") else { return nil }
        // A draft may name the bundle; its size and digest are what sealing adds.
        let draft = form == .draft
        let bundle = Manifest.Bundle(
            file: try plainName(part, "file"),
            size: try draft ? part.optionalCount("size") ?? 0 : part.count("size"),
            sha256: try draft && part.json("sha256") == nil ? "" : sha256(part),
            frames: try frames(part))
        try done(part)
        return bundle
    }

    private mutating func frames(_ fields: Fields) throws -> Manifest.Frames? {
        guard let part = try fields.optionalObject("frames") else { return nil }
        func sizes(_ name: String) throws -> [Int] {
            guard let list = part.json(name)?.array else { throw part.fail(name, "must be a list of whole numbers") }
            return try list.map {
                guard let size = $0.integer, size > 0, size <= 1 << 40 else {
                    throw part.fail(name, "must be a list of whole numbers above 0")
                }
                return Int(size)
            }
        }
        let frames = Manifest.Frames(
            packed: try sizes("packed"), content: try sizes("content"), sha256: try part.string("sha256"))
        guard frames.packed.count == frames.content.count, frames.sha256.utf8.count == 64 * frames.packed.count,
            frames.sha256.utf8.allSatisfy(Self.isHex)
        else { throw fields.fail("frames", "must have as many packed and content sizes as digests") }
        try done(part)
        return frames
    }

    private mutating func deltas(_ fields: Fields) throws -> [Manifest.Delta] {
        try fields.objects("deltas").map { part in
            let delta = Manifest.Delta(
                from: try version(part, "from"), file: try plainName(part, "file"), size: try part.count("size"),
                sha256: try sha256(part))
            try done(part)
            return delta
        }
    }

    private mutating func checks(_ fields: Fields) throws -> [Manifest.GoldenQuery] {
        try fields.objects("checks").map { part in
            let text = try part.string("expect")
            guard let expect = Expectation(text) else {
                throw part.fail(
                    "expect", "\"\(text)\" expects nothing", now: "Write it as in \">= 7000\", \"= 5\" or a text.")
            }
            let check = Manifest.GoldenQuery(on: try part.string("on"), sql: try part.string("sql"), expect: expect)
            try done(part)
            return check
        }
    }

    private mutating func budget(_ fields: Fields) throws -> [Manifest.Budget] {
        try fields.named("budget").map { name, part in
            func allowance(_ key: String) throws -> Allowance? {
                guard let text = try part.optionalString(key) else { return nil }
                guard let allowance = Allowance(text) else {
                    throw part.fail(
                        key, "\"\(text)\" is no allowance", now: "Write it as in \"20%\" or \"100\" (rows).")
                }
                return allowance
            }
            guard let dot = name.firstIndex(of: "."), name.index(after: dot) < name.endIndex else {
                throw part.fail(
                    "shrink", "stands under \"\(name)\", which names no table", now: "Write \"database.table\".")
            }
            let budget = Manifest.Budget(
                database: String(name[..<dot]), table: String(name[name.index(after: dot)...]),
                shrink: try allowance("shrink"), grow: try allowance("grow"))
            try done(part)
            return budget
        }
    }

    private mutating func steps(_ fields: Fields) throws -> [Manifest.StepUse] {
        try fields.objects("steps").map { part in
            let before = try part.word("before", Phase.self)
            let after = try part.word("after", Phase.self)
            guard let phase = before ?? after, before == nil || after == nil else {
                throw part.fail("after", "or \"before\" must be given, and only one of them")
            }
            let step = Manifest.StepUse(
                step: try part.string("step"), when: before == nil ? .after : .before, phase: phase,
                with: part.json("with") ?? .object([]))
            try done(part)
            return step
        }
    }
}
