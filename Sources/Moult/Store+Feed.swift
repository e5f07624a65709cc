internal import MoultBasics
internal import MoultFiles
public import StepKit

/// The notes of a release, in the publisher's words.
///
///     for release in try await store.whatsNew() { print(release.version, release.notes) }
public struct ReleaseNotes: Sendable, Equatable {
    /// The version of the release.
    public let version: Version
    /// The field `notes` of its manifest.
    public let notes: String
}

extension Store {
    /// Makes the store follow a feed: writes `feed` in `moult.json`. Creates the store if it is missing and `product` is given.
    ///
    /// `url` is a URL or a path; nil removes the setting. A file with comments is not changed, because they would be lost.
    public func setFeed(_ url: String?, channel: String? = nil, product: String? = nil) throws {
        try Advice.forApps {
            let layout = try StoreLayout(root: directory)
            if let product, try Files.facts(layout.settings) == nil {
                var settings = Settings(product: product, follow: .match)
                settings.keys = try trusted()
                try Orchestrator.create(at: layout.root, settings)
            }
            try requireSameKeys()
            var feed = url.map { FeedSettings(url: Address($0)) }
            if let channel { feed?.channel = channel }
            try Settings.write(feed, layout)
        }
    }

    /// Returns the notes of the releases of the feed after the installed one, up to the newest for this store, oldest first. Releases
    /// without notes are left out, and so are all but the newest twenty.
    public func whatsNew(app: Version? = nil) async throws -> [ReleaseNotes] {
        try await Self.onThread { stop in
            try Advice.forApps {
                try requireSameKeys()
                return try orchestrator(stop: stop).manifestsAfterInstalled(FeedRequest(app: app), limit: 20)
                    .compactMap { manifest in
                        manifest.notes.map { ReleaseNotes(version: manifest.version, notes: $0) }
                    }
            }
        }
    }

    /// The notes of the installed release; nil if it has none.
    public var notes: String? {
        get throws {
            try Advice.forApps { try StoreSnapshot(StoreLayout(root: directory)).installed?.manifest.notes }
        }
    }
}

extension Settings {
    /// Writes the feed into the settings, and changes nothing else. The whole file must be plain JSON.
    static func write(_ feed: FeedSettings?, _ layout: StoreLayout) throws {
        let lock = try StoreLock.take(layout, wait: 10)
        defer { withExtendedLifetime(lock) {} }
        let before = try written(layout)
        var feed = feed
        if feed?.channel == Feed.Release.defaultChannel, let old = before.feed, old.url == feed?.url {
            feed?.channel = old.channel
        }
        if before.feed?.url == feed?.url, before.feed?.channel == feed?.channel { return }
        guard let bytes = try Files.read(layout.settings, limit: 1 << 20) else { return }
        let json: JSON
        do { json = try JSON(parsing: bytes, source: layout.settings) } catch let error as MoultError {
            throw MoultError(
                .settings, .refused, what: "the feed cannot be written to \(layout.settings)",
                why: "the file has comments or trailing commas, which would be lost",
                now: "Set \"feed\" in that file by hand.", cause: error)
        }
        let text = json.setting("feed", to: feed?.written)
        // Throws for an invalid feed, before anything is written.
        _ = try Settings(parsing: Array(text.line.utf8), source: layout.settings)
        let mode = try Files.facts(layout.settings)?.mode ?? 0o644
        let hasSecrets = feed?.addresses.contains(where: \.hasSecrets) ?? false
        try Files.replace(layout.settings, with: Array(text.pretty.utf8), mode: hasSecrets ? mode & 0o600 : mode)
    }
}

extension Orchestrator {
    /// Returns the verified manifests of the releases after the installed one, up to the newest that this store can install.
    func manifestsAfterInstalled(_ request: FeedRequest, limit: Int) throws -> [Manifest] {
        let store = snapshot()
        let follower = try follower(request, store)
        let current = try follower.reader.ask()
        guard let newest = try follower.choose(from: current, store).way.last else { return [] }
        let installed = try store.installedVersion
        return try current.feed.releases
            .filter { release in
                (installed.map { $0.precedes(release.version) } ?? true) && !newest.version.precedes(release.version)
                    && release.channel == newest.channel && release.withdrawn == nil
            }
            .sorted { $0.version.precedes($1.version) }.suffix(limit)
            .map {
                try Manifest(parsing: follower.incoming($0, of: current).bytes, as: .sealed, source: "\($0.version)")
            }
    }
}
