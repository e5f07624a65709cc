internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
package import StepKit

extension Orchestrator {
    /// Copies a release of the feed, and everything needed to verify it, into a directory, for stores without a network.
    /// Returns the file names.
    package func export(
        _ version: Version, to directory: String, _ request: FeedRequest, wait: Int = 0
    ) throws -> [String] {
        let follower = try follower(request, snapshot())
        let lock = try Downloads(layout).lock(wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        let current = try follower.ask()
        try follower.remember(current)
        guard let release = current.feed.release(version) else {
            let last = current.feed.releases.suffix(5).map(\.version.description).joined(separator: ", ")
            throw MoultError(
                .refused, .refused, what: "no release \(version) in \(current.place)",
                why: "the newest releases there are \(last)", now: "Choose one of them.")
        }
        if let reason = release.withdrawn {
            throw MoultError(
                .refused, .refused, what: "release \(version) was withdrawn: \(reason)",
                why: "stores do not install a withdrawn release", now: "Export another release.")
        }
        let incoming = try follower.incoming(release, of: current)
        let manifest = try Manifest(parsing: incoming.bytes, as: .sealed, source: incoming.name)
        let output = try PinnedDirectory.output(directory, creating: true)
        defer { withExtendedLifetime(output) {} }
        let work = try WorkDirectory(in: directory, named: ".moult-export")
        defer { work.remove() }
        let content = try exported(release, incoming, current, follower)
        let bundle = try manifest.bundle.map { bundle in
            (
                bundle,
                try incoming.path.map { "\(Files.directory(of: $0))/\(bundle.file)" }
                    ?? follower.fetched(bundle, watcher)
            )
        }
        try work.deliver(try set(content, bundle, in: directory, work))
        return (bundle.map { [$0.0.file] } ?? []) + content.release.map(\.name) + content.lists.map(\.name)
            + (try content.signaturesByDigest).map(\.name) + content.signatures.map(\.name) + [Feed.fileName]
    }

    private typealias File = (name: String, bytes: [UInt8])
    private struct ExportedFiles {
        var release: [File]
        var lists: [File]
        var signatures: [File]
        var feed: [UInt8]

        /// The signatures stored under the feed's digest.
        var signaturesByDigest: [File] {
            get throws {
                let stem = FeedNames.ofSignatures(Feed.fileName, digest: try SHA256.digest(of: feed).hex)
                return signatures.map { (stem + $0.name.dropFirst(Feed.fileName.count), $0.bytes) }
            }
        }
    }

    /// Returns the manifest with its signatures, and the saved files of the feed that verify it.
    private func exported(
        _ release: Feed.Release, _ incoming: Planner.Incoming, _ current: FeedReader.Current, _ follower: FeedFollower
    ) throws -> ExportedFiles {
        func files(_ directory: String, where isWanted: (String) -> Bool) throws -> [File] {
            try Files.list(directory).filter(isWanted).compactMap { name in
                try Files.read("\(directory)/\(name)", limit: Feed.largest).map { (name, $0) }
            }
        }
        let feed = try files(layout.feed) { $0 == Feed.fileName }.first
        return ExportedFiles(
            release: try follower.signatures(of: release, current) + [(release.manifest.name, incoming.bytes)],
            lists: try files(layout.keys) { !$0.hasPrefix(".") },
            signatures: try files(layout.feed) { $0.hasPrefix(Feed.fileName) && $0.hasSuffix(".minisig") },
            feed: feed?.bytes ?? [])
    }

    /// Throws unless the present file is an earlier state of the same feed.
    private func requireSameFeed(_ present: [UInt8], _ exported: [UInt8], at path: String) throws {
        // Anything else than a feed belongs to someone else.
        let there = try? Feed(parsing: present, source: path)
        let new = try Feed(parsing: exported, source: path)
        if let there, there.product == new.product, there.serial <= new.serial { return }
        throw MoultError(
            .refused, .refused, what: "\(path) would be overwritten",
            why: there.map {
                $0.product == new.product
                    ? "it has serial \($0.serial), and the exported feed has \(new.serial)"
                    : "it is the feed of \($0.product)"
            } ?? "it is not a feed", now: "Choose another directory.")
    }

    /// Puts the files to write into the work directory, and returns them in their order. The feed is written after all files
    /// that it lists. Its signatures are first stored under the feed's digest, as next to a published feed, so that readers
    /// always find a complete feed.
    private func set(
        _ content: ExportedFiles, _ bundle: (Manifest.Bundle, source: String)?, in directory: String,
        _ work: WorkDirectory
    ) throws -> FileSet {
        var first: [String] = []
        var overwrites = false
        func add(_ name: String, _ bytes: [UInt8]) throws {
            let there = try Files.read("\(directory)/\(name)", limit: Feed.largest)
            if there == bytes { return }
            overwrites = overwrites || there != nil
            try work.add(name, bytes)
            first.append(name)
        }
        if let (bundle, source) = bundle {
            let target = "\(directory)/\(bundle.file)"
            let facts = try Files.facts(target)
            if try facts?.size != bundle.size || SHA256.digest(ofFileAt: target).hex != bundle.sha256 {
                overwrites = facts != nil
                let copy = "\(try work.ready)/\(bundle.file)"
                func requireSame(_ file: String, _ isSame: Bool) throws {
                    if isSame { return }
                    throw MoultError(
                        .refused, .refused, what: "\(file) does not match the manifest",
                        why: "its size or SHA-256 differs", now: "Report this to the publisher.")
                }
                // Another user may have put a link to a file of this user there, whose content must not become public.
                try requireSame(source, Files.factsThroughLinks(source)?.size == bundle.size)
                try Files.copy(source, to: copy, mode: 0o600)
                try requireSame(source, SHA256.digest(ofFileAt: copy).hex == bundle.sha256)
                try Files.seal(copy, mode: 0o644)
                first.append(bundle.file)
            }
        }
        for file in content.release { try add(file.name, file.bytes) }
        let count = first.count
        for file in content.lists { try add(file.name, file.bytes) }
        let before = try Files.read("\(directory)/\(Feed.fileName)", limit: Feed.largest)
        if let before { try requireSameFeed(before, content.feed, at: "\(directory)/\(Feed.fileName)") }
        // Readers of a key list reject a feed that is older than the list.
        if first.count > count, before != nil { overwrites = true }
        let digest = try SHA256.digest(of: content.feed).hex
        for file in try content.signaturesByDigest { try add(file.name, file.bytes) }
        try work.add(Feed.fileName, content.feed)
        for file in content.signatures { try work.add(file.name, file.bytes) }
        var set = FileSet(overwrites ? .overwriting : before == nil ? .added : .replacing, head: Feed.fileName)
        (set.first, set.last) = (first, content.signatures.map(\.name))
        set.stale = FeedNames.staleSignatures(
            among: try Files.list(directory), keeping: set.last,
            digests: [digest] + (try before.map { [try SHA256.digest(of: $0).hex] } ?? []))
        return set
    }
}
