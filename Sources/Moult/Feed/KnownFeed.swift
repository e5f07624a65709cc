package import MoultBasics
internal import MoultFiles
internal import MoultTrust
package import StepKit

package struct KnownFeed: Sendable {
    package let serial: Int
    package let created: Timestamp?
    package let expires: Timestamp
    /// The releases in the feed that this store would install, and those that it would skip.
    package let choice: FeedChoice.Result

    /// The release that the store should have; nil if it has the newest available to it.
    package var newest: Version? { choice.way.last?.version }
    package func isExpired(at now: Timestamp = .now) -> Bool { expires < now }

    /// Nil without a saved feed, and for a user who may not look for its releases.
    init?(
        _ saved: Feed?, _ layout: StoreLayout, _ settings: Settings, _ holds: Holds, installed: Manifest?,
        revoked: RevokedRelease?, keys: KeyRoles?
    ) throws {
        guard let feed = saved else { return nil }
        (serial, created, expires) = (feed.serial, feed.created, feed.expires)
        do {
            let places = try FeedFollower.configuredPlaces(settings, layout)
            choice = try FeedChoice(
                feed: feed, installed: installed?.version, revoked: revoked,
                onWithdrawn: settings.onWithdrawn(installed?.version, in: feed, keys: keys),
                channel: settings.feed?.channel ?? Feed.Release.defaultChannel, holds: holds,
                policy: Policy(follow: settings.follow, appVersion: settings.app, moultVersion: moultVersion),
                machine: .this(settings.rollout), isAvailable: { try FeedFollower.isAvailable($0, at: places) }
            ).choose()
        } catch {
            if Files.isDenied(error) { return nil }
            throw error
        }
    }
}
