internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// A file of a feed, to be copied to the place where stores find it.
package struct FeedFile: Sendable, Equatable {
    package let name: String
    package let size: Int
    package let sha256: String
    /// Whether a file with this name never changes.
    let isImmutable: Bool

    /// The recommended `Cache-Control`: stores notice a new feed within a minute, and caches request a file that never changes
    /// only once.
    package var cacheControl: String {
        if isImmutable { return "public, max-age=31536000, immutable" }
        return name.hasPrefix(Feed.fileName) ? "public, max-age=60" : "public, max-age=300"
    }

    package var contentType: String {
        if name.hasSuffix(".json") { return "application/json" }
        if name.hasSuffix(".minisig") { return "text/plain; charset=utf-8" }
        return name.hasSuffix(".zst") ? "application/zstd" : "application/octet-stream"
    }
}

extension FeedDirectory {
    /// Returns the files of the feed in an order in which stores can follow the copy at every moment: each file comes after the
    /// files that it names. Key lists come after the feed that they authorize, except when the first feed is copied
    /// (`isFirst`).
    ///
    /// The bundles and patches of releases with manifests in `elsewhere` need not be in the directory.
    func files(isFirst: Bool, elsewhere: Set<String> = []) throws -> [FeedFile] {
        guard let (feed, digest) = try feed() else {
            throw MoultError(
                .publishing, what: "no feed at \(file(Feed.fileName))", why: "no such file",
                now: "Specify the directory of a feed.")
        }
        let ofReleases = try feed.releases.flatMap {
            try files(of: $0, isElsewhere: elsewhere.contains($0.manifest.sha256))
        }
        let early = FeedNames.ofSignatures(Feed.fileName, digest: digest) + "."
        let signatures = try SignatureFiles.published(file(Feed.fileName))
        let lists = try KeyDirectory(path: path).all().flatMap { list -> [FeedFile] in
            let name = KeyList.fileName(list.serial)
            return try small(SignatureFiles.published(file(name)).map(\.0), isImmutable: false)
                + small([name], isImmutable: true)
        }
        let feedFiles =
            try small(signatures.map(\.0).filter { $0.hasPrefix(early) }, isImmutable: true)
            + (isFirst ? lists : []) + small([Feed.fileName], isImmutable: false)
            + small(usualNames(of: signatures), isImmutable: false) + (isFirst ? [] : lists)
        var seen: Set<String> = []
        return (ofReleases + feedFiles).filter { seen.insert($0.name).inserted }
    }

    /// Returns the bundle, patches and signatures of a release, then its manifest. The files of a withdrawn release may be
    /// missing.
    private func files(of release: Feed.Release, isElsewhere: Bool) throws -> [FeedFile] {
        let found = try manifest(of: release)?.files(listedFor: release) ?? []
        let own = release.manifest
        func immutable(_ listed: Feed.File) throws -> FeedFile? {
            guard let facts = try Files.factsThroughLinks(file(listed.name)), facts.size == listed.size else {
                if release.withdrawn != nil || isElsewhere { return nil }
                throw MoultError(
                    .publishing, what: "\(file(listed.name)) is missing or has a different size",
                    why: "the feed lists this file", now: "To find all problems: \(moult: "publish", path, "--check")")
            }
            return FeedFile(name: listed.name, size: listed.size, sha256: listed.sha256, isImmutable: true)
        }
        return try found.compactMap(immutable)
            + small(SignatureFiles.published(file(own.name)).map(\.0), isImmutable: false)
            + [immutable(own)].compactMap(\.self)
    }

    private func small(_ names: [String], isImmutable: Bool) throws -> [FeedFile] {
        try names.sorted().compactMap { name in
            guard let bytes = try Files.read(file(name), limit: Feed.largest) else { return nil }
            return FeedFile(
                name: name, size: bytes.count, sha256: try SHA256.digest(of: bytes).hex, isImmutable: isImmutable)
        }
    }

    /// Returns the names of the feed's signatures, except those named after the digest of this feed or an earlier one.
    private func usualNames(of signatures: [(String, [UInt8])]) -> [String] {
        signatures.filter { name, bytes in
            // A file that cannot be read as a signature does not belong to the feed.
            guard let key = try? Signature(file: bytes, named: name).keyID else { return false }
            return name == "\(Feed.fileName).minisig" || name == TrustedKeys.signatureName(of: Feed.fileName, by: key)
        }.map(\.0)
    }
}
