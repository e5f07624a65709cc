internal import MoultBasics
internal import MoultFiles
internal import MoultTransport
internal import MoultTrust
internal import StepKit

/// A copy of a registry's feed as a directory that `FeedPublisher` can change, and the artifacts created from it.
final class RegistryCopy {
    let path: String
    private let repository: Repository
    private let transport: Transport
    private var artifacts: [String: Artifact] = [:]
    private var directory: FeedDirectory { FeedDirectory(path: path) }

    init(_ repository: Repository, _ transport: Transport, in path: String) {
        (self.repository, self.transport, self.path) = (repository, transport, path)
    }

    static func tag(of release: Feed.Release) -> String { RegistryFile.tag(ofVersion: "\(release.version)") }

    /// The tag under which a feed stays, so that it is found if another publisher overwrites it.
    static func tag(ofFeed serial: Int, digest: String) -> String { "\(RegistryFile.feedTag)-\(serial)-\(digest)" }

    /// Returns the serial and the digest in the tag of a feed; nil for another tag.
    private static func feed(ofTag tag: String) -> (serial: Int, digest: String)? {
        let parts = tag.split(separator: "-")
        guard parts.count == 3, parts[0] == RegistryFile.feedTag, parts[2].utf8.count == 64 else { return nil }
        return Int(parts[1]).map { ($0, String(parts[2])) }
    }

    // MARK: pulling

    /// Returns the feeds that were public and that the current one does not follow, with the manifests of their releases.
    func pullLostFeeds(among tags: [String], provenBy signers: TrustedSigners) throws -> [LostFeed] {
        guard let (current, digest) = try directory.feed() else { return [] }
        let known = Set([digest] + current.previous)
        let recent = tags.compactMap { tag in
            Self.feed(ofTag: tag).map { (tag: tag, serial: $0.serial, digest: $0.digest) }
        }
        .filter { $0.serial > current.serial - Feed.longestPast && !known.contains($0.digest) }
        .sorted { ($0.serial, $0.digest) < ($1.serial, $1.digest) }
        return try recent.compactMap { found in
            guard let artifact = try transport.artifact(repository, found.tag)?.artifact,
                let bytes = try blob(artifact, Feed.fileName)
            else { return nil }
            let signatures = try artifact.layers.map(\.name).filter { $0.hasPrefix("\(Feed.fileName).") }
                .compactMap { name in try blob(artifact, name).map { (name, $0) } }
            let signed = try SignedFeed(bytes, signatures: signatures)
            guard signed.digest == found.digest, signers.keys.isEmpty || signed.isSigned(by: signers.keys) else {
                return nil
            }
            let feed = try directory.parsed(bytes).feed
            // Under another key list, serials start again, and a revoked key may have signed the feed.
            guard feed.product == current.product, feed.keyList == current.keyList else { return nil }
            let base = try feed.previous.first.flatMap { try pullOldFeed($0) }
            for release in feed.releases where current.release(release.version) == nil { try pullManifest(of: release) }
            return LostFeed(feed: feed, digest: found.digest, base: base)
        }
    }

    private func blob(_ artifact: Artifact, _ name: String) throws -> [UInt8]? {
        guard let layer = artifact.layer(name) else { return nil }
        return try transport.blob(repository, layer.sha256, named: "\(repository)/\(name)", limit: Feed.largest)
    }

    private func pullOldFeed(_ sha256: String) throws -> Feed? {
        let bytes = try transport.blob(repository, sha256, named: "\(repository)/\(Feed.fileName)", limit: Feed.largest)
        return try bytes.map { try directory.parsed($0).feed }
    }

    private func pullManifest(of release: Feed.Release) throws {
        let file = release.manifest
        if try Files.facts(directory.file(file.name)) != nil { return }
        try pull(file, limit: Manifest.largest)
        try pullSignatures(of: release)
    }

    /// Pulls the signatures of a release, unless a failed attempt has left a different release of this version under the tag.
    private func pullSignatures(of release: Feed.Release) throws {
        let (file, tag) = (release.manifest, Self.tag(of: release))
        guard let artifact = try transport.artifact(repository, tag)?.artifact,
            artifact.layer(file.name)?.sha256 == file.sha256
        else { return }
        artifacts[tag] = artifact
        for layer in artifact.layers where layer.name.hasPrefix("\(file.name).") && layer.name.hasSuffix(".minisig") {
            try pull(layer.file, limit: 1 << 14)
        }
    }

    /// Pulls the feed, its signatures and the key lists; returns the digest of their artifact, or nil if the registry has no
    /// feed.
    func pullFeed(provenBy signers: TrustedSigners?) throws -> String? {
        guard let (artifact, digest) = try transport.artifact(repository, RegistryFile.feedTag) else { return nil }
        for layer in artifact.layers { try pull(layer.file, limit: Feed.largest) }
        let signatures = try SignatureFiles.published(directory.file(Feed.fileName))
        let bytes = try Files.read(directory.file(Feed.fileName), limit: Feed.largest) ?? []
        try signers?.verify(SignedFeed(bytes, signatures: signatures), at: "\(repository)")
        return digest
    }

    func pullReleases(signaturesOf isWanted: (Feed.Release) -> Bool) throws {
        for release in try directory.feed()?.feed.releases ?? [] {
            try pull(release.manifest, limit: Manifest.largest)
            if isWanted(release) { try pullSignatures(of: release) }
        }
    }

    /// Provides the bundles of the releases over which the release is tried: from local files if they match, otherwise by
    /// download.
    func pullBases(of release: SealedRelease) throws {
        for (path, _) in try Trials.newest(in: path, before: release.manifest) {
            guard let bytes = try Files.read(path, limit: Manifest.largest) else { continue }
            let older = try Manifest(parsing: bytes, as: .sealed, source: path)
            guard let bundle = older.bundle, try Files.facts(directory.file(bundle.file)) == nil else { continue }
            let local = "\(Files.directory(of: release.path))/\(bundle.file)"
            if try bundle.content.isContent(of: local) {
                try Files.symlink(to: try Files.absolute(local), at: directory.file(bundle.file))
            } else {
                try download(bundle.content)
            }
        }
    }

    /// Downloads the bundles and patches of all releases that were not withdrawn, except files that the registry does not have.
    func pullFiles() throws {
        for release in try directory.feed()?.feed.releases ?? [] where release.withdrawn == nil {
            guard let manifest = try directory.manifest(of: release) else { continue }
            for file in manifest.files(listedFor: release) where try Files.facts(directory.file(file.name)) == nil {
                do { try download(file) } catch let error as MoultError where error.code == .notThere {
                    try Files.remove(directory.file(file.name))
                }
            }
        }
    }

    private func pull(_ file: Feed.File, limit: Int) throws {
        let (name, limit) = (file.name, min(limit, file.size))
        if let fault = PlainName.fault(name) {
            throw MoultError(
                .distrusted, .refused, what: "\(repository) has a file named \"\(name)\"", why: "its name \(fault)")
        }
        guard let bytes = try transport.blob(repository, file.sha256, named: "\(repository)/\(name)", limit: limit)
        else { return }
        try Files.writeNew(bytes, to: directory.file(name))
    }

    private func download(_ file: Feed.File) throws {
        let place = Location.registry(
            RegistryFile(repository: repository, tag: RegistryFile.feedTag, name: file.name, sha256: file.sha256))
        try transport.download(place, to: directory.file(file.name), size: file.size) { _ in }
    }

    // MARK: artifacts

    func artifact(of release: Feed.Release, _ new: SealedRelease?) throws -> Artifact? {
        let before = artifacts[Self.tag(of: release)]
        // If the artifact was not pulled and the release is not new, the artifact has not changed.
        if before == nil, new == nil { return nil }
        let name = release.manifest.name
        var layers =
            try [layer(name, .manifest)]
            + SignatureFiles.published(directory.file(name)).map { try layer($0.0, .signature) }
        if let manifest = try directory.manifest(of: release) {
            layers += manifest.files(listedFor: release).map { file in
                let type = file.name == manifest.bundle?.file ? Artifact.MediaType.bundle : .patch
                return .init(name: file.name, mediaType: type, sha256: file.sha256, size: file.size)
            }
        }
        var artifact = Artifact(.release, layers: layers)
        artifact.annotations = [("org.opencontainers.image.version", "\(release.version)")]
        return artifact == before ? nil : artifact
    }

    /// Returns the artifact with the feed, its signatures and the key lists, except signatures named after the feed's digest:
    /// they are for directories, where feed and signature are replaced one after the other.
    func feedArtifact() throws -> Artifact {
        let digest = try SHA256.digest(ofFileAt: directory.file(Feed.fileName)).hex
        let early = FeedNames.ofSignatures(Feed.fileName, digest: digest) + "."
        var layers = [try layer(Feed.fileName, .feed)]
        for name in try Files.list(path).sorted() {
            let isSignature = name.hasSuffix(".minisig")
            if name.hasPrefix("keys-") {
                layers.append(try layer(name, isSignature ? .signature : .keys))
            } else if isSignature, name.hasPrefix("\(Feed.fileName)."), !name.hasPrefix(early) {
                layers.append(try layer(name, .signature))
            }
        }
        return Artifact(.feed, layers: layers)
    }

    private func layer(_ name: String, _ type: Artifact.MediaType) throws -> Artifact.Layer {
        let path = directory.file(name)
        guard let facts = try Files.factsThroughLinks(path) else {
            throw MoultError(.publishing, what: "cannot find \(path)", why: "no such file")
        }
        return .init(name: name, mediaType: type, sha256: try SHA256.digest(ofFileAt: path).hex, size: facts.size)
    }
}

extension Artifact.Layer {
    fileprivate var file: Feed.File { Feed.File(name: name, size: size, sha256: sha256) }
}
