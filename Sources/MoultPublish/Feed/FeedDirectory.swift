internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultTrust
internal import StepKit

/// The directory that a web server serves, in which readers find a complete feed at every moment.
struct FeedDirectory {
    static let lockName = ".moult-lock"
    let path: String

    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Takes the lock that keeps out other publishers and makers of key lists.
    func lock(wait seconds: Int = 0) throws -> FileLock {
        // The directory is public, so any process could lock it.
        let file = file(Self.lockName)
        let until = ContinuousClock.now + .seconds(seconds)
        while true {
            if let lock = try FileLock.take(file, .exclusive, isTemporary: true) { return lock }
            if ContinuousClock.now >= until { break }
            usleep(20_000)
        }
        let holders = try LockHolders.of(file).map(\.description)
        throw MoultError(
            .publishing, .busy, what: "\(path) is in use",
            why: holders.isEmpty ? "locked by another moult process" : "locked by \(holders.joined(separator: ", "))",
            now: "Try again later, or wait for the other command: --wait SECONDS")
    }

    func feed() throws -> (feed: Feed, digest: String)? { try feedBytes().map(parsed) }

    func feedBytes() throws -> [UInt8]? { try Files.read(file(Feed.fileName), limit: Feed.largest) }

    func parsed(_ bytes: [UInt8]) throws -> (feed: Feed, digest: String) {
        let name = file(Feed.fileName)
        do { return (try Feed(parsing: bytes, source: name), try SHA256.digest(of: bytes).hex) } catch let error
            as MoultError where [.feed, .json].contains(error.code)
        { throw Self.explained(error, bytes, name) }
    }

    /// Returns the error for a file that is not a valid feed, with advice for the publisher.
    private static func explained(_ error: MoultError, _ bytes: [UInt8], _ name: String) -> MoultError {
        var error = error
        // If the file is not JSON, the error already says so.
        if let json = try? JSON(parsing: bytes, source: name), json["feed"] == nil {
            (error.what, error.why) = ("\(name) is not a feed", "it has no field \"feed\"")
        }
        if error.now == nil || error.now == Feed.reportFault {
            error.now = "Restore \(Feed.fileName) and \(Feed.fileName).minisig from a copy."
        }
        return error
    }

    /// Returns the names of signed releases, newest first, except those that are published from this directory itself.
    func signedReleases(except published: [String]) throws -> [String] {
        let own = try Set(published.map { try Files.absolute($0) })
        return try EarlierRelease.all(in: path).filter { release in
            try !own.contains(Files.absolute(release.path)) && !SignatureFiles.beside(release.path).isEmpty
        }.map { Files.name(of: $0.path) }
    }

    /// Returns the releases of a feed without any signature. The first signature also covers these releases, and any user who can
    /// write to the directory may have added them, or may have changed a signed feed and removed its signatures.
    func unsignedReleases(_ current: SignedFeed?, _ feed: Feed?) -> [Version] {
        guard let feed, current?.signatures.isEmpty ?? true else { return [] }
        return feed.releases.map(\.version)
    }

    /// Copies a file to the files to be published in `ready`, unless it is already public or there; returns whether it was
    /// copied.
    ///
    /// A public file must not be replaced by different content: caches and partial downloads rely on that.
    func stage(_ new: Feed.File, from source: String, in ready: String) throws -> Bool {
        if let facts = try Files.factsThroughLinks(file(new.name)) {
            guard try new.isContent(of: file(new.name)) else { throw Self.taken(file(new.name)) }
            // `moult pack` may have made it from a private file, and now it is published.
            if facts.mode & 0o044 != 0o044 { try Files.seal(file(new.name), mode: 0o644) }
            return false
        }
        let copy = "\(ready)/\(new.name)"
        // Releases may share a patch.
        let isNew = try Files.facts(copy) == nil
        if isNew { try Files.copy("\(source)/\(new.name)", to: copy, mode: 0o644) }
        // The copy will be served, so the copy is verified.
        try new.verify(copy, named: "\(source)/\(new.name)")
        if isNew { try Files.seal(copy, mode: 0o644) }
        return isNew
    }

    static func taken(_ file: String) -> MoultError {
        refusal(
            "\(file) already exists with different content", "published files must not change",
            "Choose another version for the release. If its file names do not contain the version, pack it without --name."
        )
    }

    /// Returns the signature files for the bytes. The signature by the first key has the usual name. With several keys, each
    /// signature is also stored under the name of its key.
    func signatures(of bytes: [UInt8], named name: String, by keys: [SecretKey]) throws -> [(String, [UInt8])] {
        try keys.enumerated().flatMap { index, key -> [(String, [UInt8])] in
            let file = try signature(of: bytes, named: name, by: key)
            let own = (TrustedKeys.signatureName(of: name, by: key.publicKey.id), file)
            guard keys.count > 1 else { return [("\(name).minisig", file)] }
            return index == 0 ? [("\(name).minisig", file), own] : [own]
        }
    }

    private func signature(of bytes: [UInt8], named name: String, by key: SecretKey) throws -> [UInt8] {
        try key.sign(bytes, trustedComment: "file:\(name)\thashed").file(
            untrustedComment: "signature from moult secret key \(key.publicKey.id)")
    }

    /// Returns signature files by the keys that have not signed yet: under the usual name if there are no signatures, otherwise
    /// under the name of the key.
    func adding(
        _ keys: [SecretKey], to there: [(String, [UInt8])], of bytes: [UInt8], named name: String
    ) throws -> [(String, [UInt8])] {
        let signers = try there.map { try Signature(file: $0.1, named: $0.0).keyID }
        let new = keys.filter { !signers.contains($0.publicKey.id) }
        if there.isEmpty { return try signatures(of: bytes, named: name, by: new) }
        return try new.map { key in
            let place = TrustedKeys.signatureName(of: name, by: key.publicKey.id)
            return (place, try signature(of: bytes, named: name, by: key))
        }
    }

    /// Returns the files of patches that the manifest of a release in the feed has but the feed does not list. Only files that
    /// match the manifest count.
    func stalePatches(_ feed: Feed) throws -> Set<String> {
        let kept = Set(feed.releases.flatMap(\.patches).map(\.file))
        var stale: Set<String> = []
        for release in feed.releases {
            for patch in try manifest(of: release)?.patches ?? [] where !kept.contains(patch.file) {
                if try patch.content.isContent(of: file(patch.file)) { stale.insert(patch.file) }
            }
        }
        return stale
    }

    /// Returns the bundles and patches of dropped releases, except those that releases in the feed use. The manifests stay,
    /// because a version is published only once.
    func files(of dropped: [Feed.Release], notOf feed: Feed) throws -> Set<String> {
        if dropped.isEmpty { return [] }
        func names(_ release: Feed.Release) throws -> [String] {
            guard let manifest = try manifest(of: release) else { return [] }
            return (manifest.bundle.map { [$0.file] } ?? []) + manifest.patches.map(\.file)
        }
        let used = try Set(feed.releases.flatMap(names))
        return try Set(dropped.flatMap(names).filter { try !used.contains($0) && Files.facts(file($0)) != nil })
    }

    func manifest(of release: Feed.Release) throws -> Manifest? {
        let path = file(release.manifest.name)
        guard let bytes = try Files.read(path, limit: Manifest.largest),
            try SHA256.digest(of: bytes).hex == release.manifest.sha256
        else { return nil }
        return try Manifest(parsing: bytes, as: .sealed, source: path)
    }
}

extension Manifest {
    /// The bundle, and the patches that the feed lists for a release.
    func files(listedFor release: Feed.Release?) -> [Feed.File] {
        let listed = Set(release?.patches.map(\.file) ?? [])
        return (bundle.map { [$0.content] } ?? []) + patches.filter { listed.contains($0.file) }.map(\.content)
    }
}

extension Manifest.Bundle {
    var content: Feed.File { Feed.File(name: file, size: size, sha256: sha256) }
}

extension Manifest.Patch {
    var content: Feed.File { Feed.File(name: file, size: size, sha256: sha256) }
}

extension Feed.File {
    func isContent(of path: String) throws -> Bool {
        try Files.factsThroughLinks(path)?.size == size && SHA256.digest(ofFileAt: path).hex == sha256
    }

    /// Throws if a file, which errors name differently, is missing or has another size or digest.
    func verify(_ path: String, named name: String) throws {
        if try isContent(of: path) { return }
        throw refusal(
            "\(name) does not match the manifest",
            try Files.factsThroughLinks(path) == nil ? "no such file" : "its size or SHA-256 differs",
            "Pack the release again.")
    }
}

/// The signatures of a feed: under its usual name, and under its digest, where they are published before the feed
/// itself.
struct FeedSignatures {
    let digest: String
    let early: [(String, [UInt8])]
    let usual: [(String, [UInt8])]

    init(feed: [UInt8], by keys: [SecretKey], in directory: FeedDirectory) throws {
        digest = try SHA256.digest(of: feed).hex
        early = try directory.signatures(
            of: feed, named: FeedNames.ofSignatures(Feed.fileName, digest: digest), by: keys)
        usual = try directory.signatures(of: feed, named: Feed.fileName, by: keys)
    }
}
