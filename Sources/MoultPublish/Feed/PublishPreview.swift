package import MoultBasics
internal import MoultFiles
internal import MoultTrust
package import StepKit

/// What the next feed changes for stores, computed before it is signed.
package struct PublishPreview: Sendable {
    package struct Entry: Sendable {
        package enum Change: String, Sendable { case added, changed, withdrawn, removed }
        package let change: Change
        package let release: Feed.Release
        /// The release in the previous feed.
        package let before: Feed.Release?
    }

    package var feed: String
    package let serial: Int
    /// The serial of the previous feed; nil for the first.
    package let serialBefore: Int?
    package let expires: Timestamp
    /// The key list under which the feed is made, and its expiry.
    package let keyList: String?
    package let keysExpire: Timestamp?
    package let entries: [Entry]
    package let patchesAdded: [String]
    package let patchesRemoved: [String]
    package let signedAgain: [Version]
    package let takenIn: [String]
    package let warnings: [Advice]

    init(
        _ place: String, before: Feed?, next: Feed, list: KeyList?, signsAgain: Bool, takenIn: [String],
        warnings: [Advice]
    ) {
        feed = place
        (serial, serialBefore, expires) = (next.serial, before?.serial, next.expires)
        (keyList, keysExpire) = (list.map { KeyList.fileName($0.serial) }, list?.roles.expires)
        let old = Dictionary((before?.releases ?? []).map { ($0.version, $0) }) { first, _ in first }
        var entries = next.releases.compactMap { release -> Entry? in
            guard let was = old[release.version] else { return Entry(change: .added, release: release, before: nil) }
            if release.withdrawn != nil, was.withdrawn == nil || was.onWithdrawn != release.onWithdrawn {
                return Entry(change: .withdrawn, release: release, before: was)
            }
            guard (release.rollout, release.groups, release.channel) != (was.rollout, was.groups, was.channel) else {
                return nil
            }
            return Entry(change: .changed, release: release, before: was)
        }
        let kept = Set(next.releases.map(\.version))
        entries += (before?.releases ?? []).filter { !kept.contains($0.version) }.map {
            Entry(change: .removed, release: $0, before: $0)
        }
        self.entries = entries
        func patches(_ feed: Feed?) -> [String] { (feed?.releases ?? []).flatMap(\.patches).map(\.file) }
        let (was, now) = (patches(before), patches(next))
        patchesAdded = now.filter { !was.contains($0) }
        patchesRemoved = was.filter { !now.contains($0) }
        signedAgain = signsAgain ? (before?.releases ?? []).filter { $0.withdrawn == nil }.map(\.version) : []
        (self.takenIn, self.warnings) = (takenIn, warnings)
    }
}

/// Warnings about what the publisher may not intend.
extension FeedPublisher {
    /// The longest time that the clocks of two publishers may differ, in seconds.
    private static let clockDifference = 3600

    /// Throws if the clock of this machine contradicts the previous feed: stores refuse a feed that has expired, or that comes
    /// from the future. Returns warnings.
    func checkClock(against before: Feed?) throws -> [Advice] {
        guard let before, let created = before.created else { return [] }
        let now = options.now
        func refuse(_ why: String) throws {
            if options.ignoresClock { return }
            throw refusal(
                "the clock of this machine may be wrong", why, "Correct the clock. If it is right, add --ignore-clock.")
        }
        if created.seconds > now.seconds + Self.clockDifference {
            try refuse("it shows \(now), and the previous feed was made at \(created)")
        }
        if now.seconds > before.expires.seconds + 365 * 86_400 {
            try refuse("it shows \(now), and the previous feed expired at \(before.expires)")
        } else if now > before.expires {
            return ["the previous feed has been expired since \(before.expires), and stores have refused it since"]
        }
        return []
    }

    func warnings(_ list: KeyList?, _ before: Feed?, _ next: Feed) -> [Advice] {
        var warnings: [Advice] = []
        if let list, let expires = list.roles.expires,
            expires.seconds - options.now.seconds < KeyList.warningDays * 86_400
        {
            warnings.append(
                "\(KeyList.fileName(list.serial)) expires at \(expires), and stores then refuse every feed until a newer list is "
                    + "published. To renew it: \(moult: "trust", "keys", "--key", "root.key")")
        }
        let known = Set((before?.releases ?? []).map(\.version))
        let isFirst = !(before?.releases ?? []).contains { $0.requires.app != nil }
        if isFirst, let release = next.releases.first(where: { !known.contains($0.version) && $0.requires.app != nil })
        {
            warnings.append(
                "\(release.version) is the first release that requires a version of the app: stores that do not know the version "
                    + "of their app (\"app\" in moult.json, or --app) skip it")
        }
        return warnings
            + LostWays(next, after: before).warnings(except: before.map { LostWays($0, after: nil) }).map { Advice($0) }
    }
}

extension FeedPublisher {
    private struct Previewed: Error {}

    package func preview(_ manifests: [String]) throws -> PublishPreview {
        try Files.withScratchDirectory { scratch in
            let copy = "\(scratch)/feed"
            if try Files.facts(directory.path) != nil {
                try Files.makeDirectory(copy, mode: 0o700)
                for name in try Files.list(directory.path) where !name.hasPrefix(".") {
                    guard let facts = try Files.factsThroughLinks(directory.file(name)), facts.kind == .file else {
                        continue
                    }
                    if facts.size <= Feed.largest, !name.contains(".tar") {
                        try Files.copy(directory.file(name), to: "\(copy)/\(name)", mode: 0o644)
                    } else {
                        try Files.symlink(to: try Files.absolute(directory.file(name)), at: "\(copy)/\(name)")
                    }
                }
            }
            do {
                var preview = try Self.preview { announce in
                    var options = options
                    (options.upload, options.announce) = (nil, announce)
                    let isInCopy = try manifests.map {
                        try Files.absolute(Files.directory(of: $0)) == Files.absolute(directory.path)
                    }
                    let there = zip(manifests, isInCopy).map { $1 ? "\(copy)/\(Files.name(of: $0))" : $0 }
                    _ = try FeedPublisher(copy, options).publish(there)
                }
                preview.feed = directory.file(Feed.fileName)
                return preview
            } catch let error as MoultError { throw error.renaming(copy, to: directory.path) }
        }
    }

    /// Runs a publisher until it announces what it will change.
    static func preview(_ publish: (_ announce: @escaping (PublishPreview) throws -> Void) throws -> Void) throws
        -> PublishPreview
    {
        var preview: PublishPreview?
        do {
            try publish {
                preview = $0
                throw Previewed()
            }
        } catch is Previewed {}
        guard let preview else { throw MoultError(.publishing, what: "nothing would be published") }
        return preview
    }
}

extension RegistryFeed {
    package func preview(_ manifests: [String], _ options: PublishOptions) throws -> PublishPreview {
        var preview = try FeedPublisher.preview { announce in
            var options = options
            options.announce = announce
            _ = try publish(manifests, options)
        }
        preview.feed = "\(repository)"
        return preview
    }
}

extension MoultError {
    func renaming(_ path: String, to name: String) -> MoultError {
        var error = self
        (error.what, error.why) = (what.replacing(path, with: name), why?.replacing(path, with: name))
        error.now = now?.replacing(text: path, with: name)
        return error
    }
}
