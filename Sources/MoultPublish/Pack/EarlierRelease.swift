internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

struct EarlierRelease {
    let path: String
    let manifest: Manifest
    private let bytes: [UInt8]

    var json: JSON { get throws { try JSON(parsing: bytes, source: path) } }

    var digest: String { get throws { try SHA256.digest(of: bytes).hex } }

    /// Whether the bundle exists: it may be missing if the feed no longer keeps the release.
    var hasBundle: Bool {
        get throws {
            guard let bundle = manifest.bundle else { return true }
            return try Files.factsThroughLinks("\(Files.directory(of: path))/\(bundle.file)") != nil
        }
    }

    /// Nil if the file is not a sealed manifest.
    init?(_ path: String) throws {
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file, facts.size <= Manifest.largest,
            let bytes = try Files.read(path, limit: Manifest.largest)
        else { return nil }
        do { manifest = try Manifest(parsing: bytes, as: .sealed, source: path) } catch {
            // Other files may also end with .json. A release whose sequence is too large for a next release is an error, so
            // that it is not overlooked.
            guard Self.hasLastSequence(bytes) else { return nil }
            throw error
        }
        (self.path, self.bytes) = (path, bytes)
    }

    private static func hasLastSequence(_ bytes: [UInt8]) -> Bool {
        // A file that is not JSON is not a release.
        guard let json = try? JSON(parsing: bytes, source: "") else { return false }
        return json["manifest"] != nil && json["sequence"]?.integer ?? 0 >= Fields.countLimit
    }

    static func all(in directory: String) throws -> [EarlierRelease] {
        try Files.list(directory).filter { $0.hasSuffix(".json") }.sorted()
            .compactMap { try EarlierRelease("\(directory)/\($0)") }
            .sorted { $1.manifest.version.precedes($0.manifest.version) }
    }

    /// Returns the newest release in a directory, of a given product or of the only product in it; nil if the directory has
    /// none.
    static func newest(in directory: String, of product: String?) throws -> EarlierRelease? {
        let all = try all(in: directory).filter { product == nil || $0.manifest.product == product }
        let products = Set(all.map(\.manifest.product))
        guard products.count < 2 else {
            throw MoultError(
                .packing, .refused, what: "\(directory) has releases of several products",
                why: products.sorted().joined(separator: ", "), now: "Choose one: --product NAME")
        }
        return all.first
    }

    /// Returns the sequence for a release without one, and the reason: the next after the newest release. If the directory already
    /// has a release of this version, returns its sequence, so that packing the same draft again makes the same release.
    static func sequence(
        of version: Version, after newest: EarlierRelease?, product: String, in directory: String
    ) throws -> (number: Int, reason: String) {
        let same = try all(in: directory).first { $0.manifest.product == product && $0.manifest.version == version }
        if let same { return (same.manifest.sequence, "that of \(same.path), which has the same version") }
        let last = try all(in: directory).filter { $0.manifest.product == product }.max {
            $0.manifest.sequence < $1.manifest.sequence
        }
        guard let newest = last ?? newest else { return (1, "the first release in the output directory") }
        return (newest.manifest.sequence + 1, "one more than \(newest.path)")
    }

    func precedes(_ release: Manifest) -> Bool {
        manifest.product == release.product && manifest.version.precedes(release.version)
    }
}
