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
    /// Makes the store follow a feed: writes `feed` in `moult.json`. Creates the store if it is missing and `product` is given. If the
    /// store follows this feed already, only a given channel changes; another feed has none of the fields of the present one.
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
            try Settings.write(feed: url.map { Address($0) }, channel: channel, layout)
        }
    }

    /// Returns the notes of the releases of the feed after the installed one, up to the newest for this store, oldest first. Releases
    /// without notes are left out, and so are all but the newest twenty.
    public func whatsNew(app: Version? = nil) async throws -> [ReleaseNotes] {
        try await Self.onThread { stop in
            try Advice.forApps {
                try requireSameKeys()
                return try orchestrator(stop: stop).manifestsAfterInstalled(
                    FeedRequest(UpdateRequest(app: app)), limit: 20
                ).compactMap { manifest in manifest.notes.map { ReleaseNotes(version: manifest.version, notes: $0) } }
            }
        }
    }

    /// The notes of the installed release; nil if it has none.
    public var notes: String? {
        get throws { try Advice.forApps { try StoreSnapshot(StoreLayout(root: directory)).installed?.manifest.notes } }
    }
}

extension Settings {
    /// Writes the feed into the settings, and changes nothing else. The whole file must be plain JSON.
    static func write(feed url: Address?, channel: String?, _ layout: StoreLayout) throws {
        let lock = try StoreLock.take(layout, wait: 10)
        defer { withExtendedLifetime(lock) {} }
        let before = try written(layout).feed
        // Another server gets neither the mirrors nor the secrets of the present one.
        var feed = url.map { url in before.flatMap { $0.url == url ? $0 : nil } ?? FeedSettings(url: url) }
        if let channel { feed?.channel = channel }
        if feed == before { return }
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
        return try current.feed.releases.filter { release in
            (installed.map { $0.precedes(release.version) } ?? true) && !newest.version.precedes(release.version)
                && release.channel == newest.channel && release.withdrawn == nil
        }.sorted { $0.version.precedes($1.version) }.suffix(limit).map {
            try Manifest(parsing: follower.incoming($0, of: current).bytes, as: .sealed, source: "\($0.version)")
        }
    }
}
