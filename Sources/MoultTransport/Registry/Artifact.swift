internal import MoultBasics
internal import MoultFiles
internal import MoultTrust

/// An OCI image manifest that contains files of a feed: one layer per file, with its name as an annotation.
package struct Artifact: Sendable, Equatable {
    /// The `artifactType`.
    package enum Kind: String, Sendable {
        case feed = "application/vnd.moult.feed.v1"
        case release = "application/vnd.moult.release.v1"
    }

    package struct Layer: Sendable, Equatable {
        package let name: String
        package let mediaType: String
        package let sha256: String
        package let size: Int

        package init(name: String, mediaType: MediaType, sha256: String, size: Int) {
            self.init(name: name, type: mediaType.rawValue, sha256: sha256, size: size)
        }

        fileprivate init(name: String, type: String, sha256: String, size: Int) {
            (self.name, mediaType, self.sha256, self.size) = (name, type, sha256, size)
        }
    }

    /// The media type of a layer. It is never a media type of container images, because other programs recompress such layers.
    package enum MediaType: String, Sendable {
        case feed = "application/vnd.moult.feed.v1+json"
        case manifest = "application/vnd.moult.manifest.v1+json"
        case keys = "application/vnd.moult.keys.v1+json"
        case signature = "application/vnd.moult.signature.v1"
        case bundle = "application/vnd.moult.bundle.v1"
        case patch = "application/vnd.moult.patch.v1"
    }

    package let kind: Kind
    package var layers: [Layer]
    package var annotations: [(name: String, value: String)] = []

    package init(_ kind: Kind, layers: [Layer]) { (self.kind, self.layers) = (kind, layers) }

    package static func == (one: Artifact, other: Artifact) -> Bool {
        one.kind == other.kind && one.layers == other.layers
            && one.annotations.elementsEqual(other.annotations, by: ==)
    }

    static let manifestType = "application/vnd.oci.image.manifest.v1+json"
    static let emptyType = "application/vnd.oci.empty.v1+json"
    /// The configuration of every artifact: an empty object.
    static let emptyConfig = "{}"
    /// A manifest is read into memory, so its size is limited.
    static let largest = 1 << 20

    /// Returns the layer with this file name, if any. In the name, `RegistryFile.release` is a placeholder for the name of the
    /// release's manifest.
    package func layer(_ name: String) -> Layer? {
        if let layer = layers.first(where: { $0.name == name }) { return layer }
        guard name.hasPrefix(RegistryFile.release),
            let manifest = layers.first(where: { $0.mediaType == MediaType.manifest.rawValue })
        else { return nil }
        let real = manifest.name + name.dropFirst(RegistryFile.release.count)
        return layers.first { $0.name == real }
    }

    init(parsing bytes: [UInt8], source: String) throws {
        let fields = try Fields(JSON(parsing: bytes, source: source)) { place, why, _ in
            MoultError(
                .badAnswer, .refused, what: "\(source) is not a moult artifact",
                why: place.isEmpty ? why : "\(place) \(why)",
                now: "Use a repository to which `moult publish` has published.")
        }
        // `mediaType` is optional in an image manifest.
        if let type = try fields.optionalString("mediaType"), type != Self.manifestType {
            throw fields.fail("mediaType", "is \"\(type.prefix(100))\"")
        }
        guard let text = try fields.optionalString("artifactType"), let kind = Kind(rawValue: text) else {
            throw fields.fail("artifactType", "is not a type that moult writes")
        }
        self.kind = kind
        layers = []
        var names: Set<String> = []
        for layer in try fields.objects("layers") {
            // Other programs may add layers of their own.
            guard let name = try layer.optionalTexts("annotations")?[Self.title] else { continue }
            let digest = try layer.string("digest")
            guard digest.hasPrefix("sha256:"), let sha256 = Digest(hex: digest.dropFirst(7)) else {
                throw layer.fail("digest", "is not a SHA-256")
            }
            guard names.insert(name).inserted else {
                throw layer.fail("annotations", "have the title of an earlier layer")
            }
            let (type, size) = (try layer.string("mediaType"), try layer.count("size"))
            layers.append(Layer(name: name, type: type, sha256: sha256.hex, size: size))
        }
    }

    private static let title = "org.opencontainers.image.title"

    /// The JSON of the manifest, as it is pushed.
    package var bytes: [UInt8] {
        get throws {
            let empty: JSON = .record([
                "mediaType": Self.emptyType, "digest": try Self.digest(of: Array(Self.emptyConfig.utf8)),
                "size": Self.emptyConfig.utf8.count,
            ])
            let json = JSON.record([
                "schemaVersion": 2, "mediaType": Self.manifestType, "artifactType": kind.rawValue, "config": empty,
                "layers": layers.map { layer in
                    JSON.record([
                        "mediaType": layer.mediaType, "digest": "sha256:\(layer.sha256)", "size": layer.size,
                        "annotations": JSON.object([.init(Self.title, .string(layer.name))]),
                    ])
                },
                "annotations": annotations.isEmpty
                    ? nil : JSON.object(annotations.map { .init($0.name, .string($0.value)) }),
            ])
            return Array(json.pretty.utf8)
        }
    }

    static func digest(of bytes: [UInt8]) throws -> String { "sha256:\(try SHA256.digest(of: bytes).hex)" }
}
