package import MoultBasics
internal import MoultFiles
package import MoultTransport
internal import MoultTrust
internal import StepKit

/// A feed in an OCI registry: an artifact for each release, tagged with its version, and one for the feed itself.
///
/// To publish, the feed is copied to a scratch directory and changed there, and the new files are pushed, releases
/// first. The feed is a single artifact, so readers find either the old or the new feed.
package struct RegistryFeed {
    let repository: Repository
    let transport: Transport
    /// A repository of the same registry to mount blobs from.
    let mountSource: Repository?

    package init(_ repository: Repository, _ transport: Transport, mountingFrom source: Repository? = nil) {
        (self.repository, self.transport, mountSource) = (repository, transport, source)
    }

    /// Adds releases, applies the changes and renews the feed, like `FeedPublisher`.
    package func publish(_ manifests: [String], _ options: PublishOptions) throws -> PublishReport {
        let scratch = try ScratchDirectory()
        return try named(scratch) {
            let copy = RegistryCopy(repository, transport, in: scratch.path)
            let before = try copy.pullFeed(provenBy: TrustedSigners(options))
            let releases = try manifests.map { try SealedRelease($0, options: options) }
            try copy.pullReleases(signaturesOf: { release in
                options.changesKeys || releases.contains { $0.manifest.version.ranksWith(release.version) }
            })
            if options.tryInstall != nil { for release in releases { try copy.pullBases(of: release) } }
            var report = try FeedPublisher(scratch.path, options, lacksBundles: true).publish(manifests)
            report.feed = "\(repository)"
            try push(
                copy, releases, report, isCurrent: { try currentDigest() == before })
            return report
        }
    }

    /// Returns the digest of the feed's artifact, even from a registry that does not report it.
    private func currentDigest() throws -> String? {
        try transport.digest(repository, RegistryFile.feedTag)
            ?? transport.artifact(repository, RegistryFile.feedTag)?.digest
    }

    /// Downloads the whole feed, and checks it as a store would.
    package func check(
        follow: (_ feed: String, _ product: String) throws -> [MoultError]
    ) throws -> FeedCheck.Report {
        let scratch = try ScratchDirectory()
        return try named(scratch) {
            let copy = RegistryCopy(repository, transport, in: scratch.path)
            guard try copy.pullFeed(provenBy: nil) != nil else {
                throw MoultError(
                    .publishing, what: "no feed at \(repository)",
                    why: "it has no tag \"\(RegistryFile.feedTag)\"",
                    now: "Specify a repository that contains a feed: oci://HOST/NAME")
            }
            try copy.pullReleases(signaturesOf: { _ in true })
            try copy.pullFiles()
            var report = try FeedCheck(scratch.path).run(tidy: false, follow: follow)
            report.feed = "\(repository)"
            report.faults = report.faults.map { fault in
                var fault = fault
                (fault.why, fault.now) = (named(fault.why, scratch), fault.now.map { named($0, scratch) })
                return fault
            }
            return report
        }
    }

    // MARK: pushing

    private func push(
        _ copy: RegistryCopy, _ new: [SealedRelease], _ report: PublishReport, isCurrent: () throws -> Bool
    ) throws {
        guard let (feed, _) = try FeedDirectory(path: copy.path).feed() else { return }
        try transport.pushConfig(to: repository, mountedFrom: mountSource)
        for release in feed.releases {
            let sealed = new.first { $0.manifest.version.ranksWith(release.version) }
            if let artifact = try copy.artifact(of: release, sealed) {
                try put(artifact, from: copy, tag: RegistryCopy.tag(of: release))
            }
        }
        let artifact = try copy.feedArtifact()
        try push(artifact, from: copy)
        guard try isCurrent() else {
            throw MoultError(
                .publishing, .busy, what: "the feed at \(repository) has changed",
                why: "another publisher replaced it during this command", now: "Run the command again.")
        }
        try putFeed(artifact)
    }

    private func put(_ artifact: Artifact, from copy: RegistryCopy, tag: String) throws {
        try push(artifact, from: copy)
        _ = try transport.put(artifact, to: repository, tag: tag)
    }

    /// Pushes the missing blobs. Layers without a file in the directory are already in the registry.
    private func push(_ artifact: Artifact, from copy: RegistryCopy) throws {
        for layer in artifact.layers {
            let path = "\(copy.path)/\(layer.name)"
            guard try Files.factsThroughLinks(path) != nil else { continue }
            _ = try transport.push(
                .file(path), sha256: layer.sha256, size: layer.size, to: repository, mountedFrom: mountSource)
        }
    }

    /// Puts the artifact of the feed into the registry. This is the last request, which makes the new feed public.
    private func putFeed(_ artifact: Artifact) throws {
        do { _ = try transport.put(artifact, to: repository, tag: RegistryFile.feedTag) } catch {
            // The request may have succeeded although the response was lost.
            let digest = "sha256:\(try SHA256.digest(of: artifact.bytes).hex)"
            if (try? currentDigest()) == digest { return }
            throw error
        }
    }

    /// Runs the body so that its errors name the repository instead of the scratch directory.
    private func named<Result>(_ scratch: ScratchDirectory, _ body: () throws -> Result) throws -> Result {
        do { return try body() } catch var error as MoultError {
            error.what = named(error.what, scratch)
            (error.why, error.now) = (error.why.map { named($0, scratch) }, error.now.map { named($0, scratch) })
            throw error
        }
    }

    private func named(_ text: String, _ scratch: ScratchDirectory) -> String {
        text.replacing("\(scratch.path)/", with: "\(repository)/").replacing(scratch.path, with: "\(repository)")
    }
}

/// The keys that may have signed the current feed: the publisher's own keys, and those in the key lists next to the
/// list to be published.
struct TrustedSigners {
    let keys: [PublicKey]

    init(_ options: PublishOptions) throws {
        var keys = options.keys.map(\.publicKey)
        for case .keyList(let path) in options.changes {
            keys += try KeyDirectory(path: Files.directory(of: path)).all().flatMap { $0.roles.feed.entries.map(\.key) }
        }
        self.keys = keys
    }

    /// Refuses a feed that no known key has signed: signing its successor would endorse its releases.
    func verify(_ bytes: [UInt8], _ signatures: [(String, [UInt8])], of repository: Repository) throws {
        // Without keys, the new feed is not signed, and endorses nothing.
        if keys.isEmpty { return }
        for (name, file) in signatures {
            // An invalid signature file proves nothing.
            guard let signature = try? Signature(file: file, named: name) else { continue }
            let signers = keys.filter { $0.id == signature.keyID }
            if !signers.isEmpty, (try? signature.verify(bytes, named: name, by: signers)) != nil { return }
        }
        throw MoultError(
            .distrusted, .refused, what: "the feed at \(repository) is not signed with any of the specified keys",
            why: "the new feed would endorse the releases in the old one",
            now: "Add the key that signed the old feed: --key FILE")
    }
}

extension PublishOptions {
    /// Whether the keys that stores trust change.
    var changesKeys: Bool {
        changes.contains {
            switch $0 {
            case .trust, .keyList: true
            case .withdraw, .roll: false
            }
        }
    }
}
