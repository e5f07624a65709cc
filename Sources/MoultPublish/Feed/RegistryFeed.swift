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

    package func publish(_ manifests: [String], _ options: PublishOptions) throws -> PublishReport {
        try retryingRace(seconds: options.wait) { try publishOnce(manifests, options) }
    }

    private func publishOnce(_ manifests: [String], _ options: PublishOptions) throws -> PublishReport {
        let scratch = try ScratchDirectory()
        return try named(scratch) {
            let copy = RegistryCopy(repository, transport, in: scratch.path)
            let before = try copy.pullFeed(provenBy: TrustedSigners(options))
            let tags = try transport.tags(of: repository)
            try requireNew(options, before, tags)
            let lost = try copy.pullLostFeeds(among: tags, provenBy: TrustedSigners(options))
            let releases = try manifests.map { try SealedRelease($0, options: options) }
            // An artifact that loses a patch is pushed again, so that the registry can free the space.
            let mayChangeAll =
                options.changesKeys || options.patches != nil || options.keptReleases != nil || !lost.isEmpty
            try copy.pullReleases(signaturesOf: { release in
                mayChangeAll || releases.contains { $0.manifest.version.ranksWith(release.version) }
            })
            try requireFiles(copy, except: releases.map(\.manifest.version), withdrawing: options)
            if options.tryInstall != nil { for release in releases { try copy.pullBases(of: release) } }
            var report = try FeedPublisher(scratch.path, options, lacksBundles: true, lost: lost).publish(manifests)
            report.feed = "\(repository)"
            report.removed = report.preview?.patchesRemoved ?? []
            try push(copy, releases, report, isCurrent: { try currentDigest() == before })
            return try takingIn(report, copy, options)
        }
    }

    /// Publishes again if another publisher has replaced the feed at the same moment, and this command has overwritten that
    /// feed. A registry has no conditional requests for tags. But each publisher tags its feed under a name of its own before it
    /// reads the others, so at least one of two publishers finds the other.
    private func takingIn(_ report: PublishReport, _ copy: RegistryCopy, _ options: PublishOptions) throws
        -> PublishReport
    {
        let lost = try copy.pullLostFeeds(among: transport.tags(of: repository), provenBy: TrustedSigners(options))
        if lost.isEmpty { return report }
        var again = options
        (again.changes, again.tryInstall, again.keptReleases, again.serial) = ([], nil, nil, nil)
        (again.isNew, again.announce) = (false, nil)
        let next = try publish([], again)
        var report = report
        (report.serial, report.expires, report.takenIn) = (next.serial, next.expires, report.takenIn + next.takenIn)
        return report
    }

    /// Throws if the registry has lost a bundle or a patch that the feed lists: a new signature must not endorse such a feed.
    private func requireFiles(_ copy: RegistryCopy, except new: [Version], withdrawing options: PublishOptions) throws {
        let withdrawn = options.changes.compactMap {
            if case .withdraw(let version, _, _) = $0 { version } else { nil }
        }
        let directory = FeedDirectory(path: copy.path)
        for release in try directory.feed()?.feed.releases ?? []
        where release.withdrawn == nil && !(new + withdrawn).contains(where: { $0.ranksWith(release.version) }) {
            guard let manifest = try directory.manifest(of: release) else { continue }
            for file in manifest.files(listedFor: release)
            where try !transport.has(file.sha256, in: repository, named: "\(repository)/\(file.name)") {
                throw refusal(
                    "the feed at \(repository) cannot be renewed",
                    "it lists \(file.name), which the registry does not have",
                    "Publish release \(release.version) again from its manifest, or withdraw it with --withdraw.")
            }
        }
    }

    /// Throws if the tag of the feed seems to have been deleted, or if `--new` would start a feed again.
    private func requireNew(_ options: PublishOptions, _ before: String?, _ tags: [String]) throws {
        if before != nil, options.isNew {
            throw refusal(
                "\(repository) has a feed already",
                "--new is for the first feed, and stores refuse one that starts again", "Publish without --new.")
        }
        if before == nil, !options.isNew, options.serial == nil, let tag = tags.first {
            throw refusal(
                "\(repository) has no tag \"\(RegistryFile.feedTag)\", but has others, such as \"\(tag)\"",
                "stores that have seen an earlier feed refuse one that starts again",
                "Restore the tag, or continue with a serial above the last one: --serial N. If no store has seen a feed of this repository: --new"
            )
        }
    }

    /// Returns the digest of the feed's artifact, even from a registry that does not report it.
    private func currentDigest() throws -> String? {
        try transport.digest(repository, RegistryFile.feedTag)
            ?? transport.artifact(repository, RegistryFile.feedTag)?.digest
    }

    /// Downloads the whole feed, and checks it as a store would.
    package func check(follow: (_ feed: String, _ product: String) throws -> [MoultError]) throws -> FeedCheck.Report {
        let scratch = try ScratchDirectory()
        return try named(scratch) {
            let copy = RegistryCopy(repository, transport, in: scratch.path)
            guard try copy.pullFeed(provenBy: nil) != nil else {
                throw MoultError(
                    .publishing, what: "no feed at \(repository)", why: "it has no tag \"\(RegistryFile.feedTag)\"",
                    now: "Specify a repository that contains a feed: oci://HOST/NAME")
            }
            try copy.pullReleases(signaturesOf: { _ in true })
            try copy.pullFiles()
            var report = try FeedCheck(scratch.path).run(tidy: false, follow: follow)
            report.feed = "\(repository)"
            for index in report.faults.indices { report.faults[index].rename(scratch.path, to: "\(repository)") }
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
        // From here on, the next publisher finds this feed, even if another one overwrites it.
        let digest = try SHA256.digest(ofFileAt: "\(copy.path)/\(Feed.fileName)").hex
        _ = try transport.put(artifact, to: repository, tag: RegistryCopy.tag(ofFeed: feed.serial, digest: digest))
        guard try currentDigest() == "sha256:\(SHA256.digest(of: artifact.bytes).hex)" else {
            throw MoultError(
                .publishing, .busy, what: "the feed at \(repository) was replaced",
                why: "another publisher replaced it at the same moment",
                now: "Run the command again: it takes in what was lost.")
        }
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
        do { return try body() } catch let error as MoultError {
            throw error.renaming(scratch.path, to: "\(repository)")
        }
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
    func verify(_ feed: SignedFeed, at place: String) throws {
        // Without keys, the new feed is not signed, and endorses nothing.
        if keys.isEmpty || feed.isSigned(by: keys) { return }
        throw Self.unproven(place)
    }

    static func unproven(_ place: String) -> MoultError {
        MoultError(
            .distrusted, .refused, what: "the feed at \(place) is not signed with any of the specified keys",
            why: "the new feed would endorse the releases in the old one",
            now: "Add the key that signed the old feed: --key FILE")
    }
}

extension PublishOptions {
    var changesKeys: Bool {
        changes.contains {
            switch $0 {
            case .trust, .keyList: true
            case .withdraw, .roll, .promote: false
            }
        }
    }
}
