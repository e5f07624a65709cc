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
                why: "it has \(bytes.count) bytes, and at most \(Self.largest) are read")
        }
        let json = try JSON(parsing: bytes, as: form == .draft ? .draft : .plain, source: source)
        var reader = ManifestReader(form: form, source: source)
        self = try reader.manifest(Fields(json, failure: reader.failure))
    }
}
