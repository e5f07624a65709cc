package import MoultBasics
internal import MoultFiles
internal import MoultStore
internal import MoultTrust
package import StepKit

/// What a store knows of its feed since the last request; makes no request.
package struct KnownFeed: Sendable {
    package let serial: Int
    package let created: Timestamp?
    /// Until when it may be believed, as its publisher said.
    package let expires: Timestamp
    /// The releases in it that this store would install.
    package let choice: FeedChoice.Result

    /// The release that the store should have; nil if it has the newest that it may have.
    package var newest: Version? { choice.way.last?.version }
    package func isOver(at now: Timestamp = .now) -> Bool { expires < now }

    /// Nil if nothing is known: never asked, or what was kept is not what was verified then.
    static func read(
        _ layout: StoreLayout, _ settings: Settings, _ holds: Holds, installed: Manifest?
    ) throws -> KnownFeed? {
        do {
            let path = "\(layout.feed)/\(Feed.fileName)"
            guard let bytes = try Files.read(path, limit: Feed.largest),
                try SHA256.digest(of: bytes).hex == ReplayGuard.read(layout).sha256
            else { return nil }
            let feed = try Feed(parsing: bytes, source: path)
            let choice = try FeedChoice(
                feed: feed, installed: installed?.version, installedSequence: installed?.sequence,
                seen: ReplayGuard.read(layout), channel: settings.feed?.channel ?? Feed.Release.usualChannel,
                holds: holds,
                policy: Policy(follow: settings.follow, appVersion: settings.app, moultVersion: moultVersion),
                machine: .this()
            )
            .choose()
            return KnownFeed(serial: feed.serial, created: feed.created, expires: feed.expires, choice: choice)
        } catch {
            // A user who may not read the kept feed still gets the rest.
            if Files.isDenied(error) { return nil }
            throw error
        }
    }
}
