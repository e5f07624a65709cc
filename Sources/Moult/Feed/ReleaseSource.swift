package import MoultBasics
internal import MoultFiles
internal import MoultTransport
internal import MoultTrust
package import StepKit

/// The source of an installation: a path or a URL. Its content shows whether it is a release or a feed.
package enum ReleaseSource: Sendable {
    case manifest(ReleaseFile)
    case webManifest(Content)
    case feed(Content)
    /// The version of a release in the store's feed, or of one that the store keeps.
    case version(Version)

    /// The content that was read to identify the source. Nothing in it is verified yet.
    package struct Content: Sendable {
        package let address: Address
        let bytes: [UInt8]
        var tag: String?
        /// The transport that got it, for the requests that follow; nil for a file.
        var transport: Transport?
    }

    package init(_ name: String, stop: @escaping @Sendable () throws -> Void = {}) throws {
        switch try Location(name) {
        case .file(let path):
            // A name that is not a URL stays as given, because messages and plans repeat it.
            self = try Self.local(contains("://", in: Array(name.utf8)) ? path : name)
        case let location:
            let address = location.address
            let transport = Transport(stopIfAsked: stop)
            guard case .bytes(let bytes, let tag) = try transport.read(location, limit: Feed.largest) else {
                throw MoultError(
                    .notThere, what: "no release at \(address)", why: "the server has no such file",
                    now: "Specify the manifest of a release, or a feed.")
            }
            let content = Content(address: address, bytes: bytes, tag: tag, transport: transport)
            self = content.isFeed ? .feed(content) : .webManifest(content)
        }
    }

    /// Errors of another kind are reported when the manifest is read.
    private static func isMissing(_ path: String) -> Bool {
        do { return try Files.factsThroughLinks(path) == nil } catch { return false }
    }

    private static func local(_ path: String) throws -> ReleaseSource {
        let file = Feed.file(at: path)
        if file != path {
            if let feed = try feed(at: file) { return .feed(feed) }
            throw MoultError(
                .manifest, what: "\(path) is a directory without a feed", why: "\(file) is missing or is not a feed",
                now: "Specify the manifest of a release in that directory.")
        }
        if isMissing(path) {
            if let version = Version(path) { return .version(version) }
            throw MoultError(
                .notThere, what: "no release at \(path)", why: "no such file",
                now:
                    "Specify the manifest of a release, the directory of a feed, or a URL that starts with https:// or oci://."
            )
        }
        // A feed may be larger than any manifest.
        let size = try Files.factsThroughLinks(path)?.size ?? 0
        if size > Manifest.largest, let feed = try feed(at: path) { return .feed(feed) }
        let release = try ReleaseFile(path)
        let content = Content(address: Address(try Files.absolute(path)), bytes: release.bytes)
        return content.isFeed ? .feed(content) : .manifest(release)
    }

    private static func feed(at path: String) throws -> Content? {
        // If the file cannot be read, reading it as a manifest reports the reason.
        guard let bytes = try? Files.read(path, limit: Feed.largest) else { return nil }
        let content = Content(address: Address(try Files.absolute(path)), bytes: bytes)
        return content.isFeed ? content : nil
    }

    package var webAddress: Address? {
        get throws {
            switch self {
            case .manifest, .version: nil
            case .webManifest(let content): content.address
            case .feed(let content): try Location("\(content.address)").isLocal ? nil : content.address
            }
        }
    }

    /// The product of the source, which the store must also have.
    package var product: String {
        get throws {
            switch self {
            case .manifest(let release): try release.product
            case .version(let version):
                throw MoultError(
                    .usage, .usage, what: "no release at \(version)", why: "a new store follows no feed",
                    now: "Specify the manifest of a release, or a feed.")
            case .webManifest(let content):
                try Manifest(parsing: content.bytes, as: .sealed, source: "\(content.address)").product
            case .feed(let content): try Feed(parsing: content.bytes, source: "\(content.address)").product
            }
        }
    }
}

extension Feed {
    /// Returns the path of the feed's file: for a directory, as `moult publish` writes it, the feed in it; otherwise the path
    /// itself.
    package static func file(at path: String) -> String {
        // If this fails, reading the path reports the reason.
        guard (try? Files.factsThroughLinks(path))?.kind == .directory else { return path }
        return "\(path)/\(fileName)"
    }
}

extension ReleaseSource.Content {
    /// Whether the content is a feed: a feed has the version of its format under the key "feed", and a manifest has no such
    /// key.
    fileprivate var isFeed: Bool {
        // If the content is not JSON, reading it as a manifest reports that.
        guard contains("\"feed\"", in: bytes), let json = try? JSON(parsing: bytes, source: "") else { return false }
        return json["feed"] != nil
    }
}
