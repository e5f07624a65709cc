package import StepKit

/// The releases from which stores may update to a new release, and which therefore need patches.
package enum PatchBases {
    package static let defaultCount = 3

    /// Returns the releases of a feed from which `pack` makes patches to a version: the newest older ones of each channel that
    /// stores may have. A release that is being rolled out has stores. A withdrawn one has them, too, but none may install it any more.
    package static func offered(by feed: Feed, before version: Version, newest count: Int) -> Set<Version> {
        let older = feed.releases.filter { $0.withdrawn == nil && $0.version.precedes(version) }
        return Set(Dictionary(grouping: older, by: \.channel).values.flatMap { $0.suffix(count).map(\.version) })
    }

    /// Returns the releases from which patches stay in the feed. The stores of a withdrawn release need them to leave it. With
    /// `count`, the publisher keeps only those from the newest releases of each line before its newest one.
    static func keeping(_ feed: Feed, newest count: Int?) -> Set<Version> {
        guard let count else { return Set(feed.releases.map(\.version)) }
        if count == 0 { return [] }
        let lines = Dictionary(grouping: feed.releases.filter { $0.withdrawn == nil }) { Line($0) }
        return Set(lines.values.flatMap { $0.suffix(count + 1).map(\.version) })
    }

    /// The releases with the same stores: those of a channel with the same requirement of an app.
    struct Line: Hashable {
        private let channel: String
        private let app: String?
        init(_ release: Feed.Release) { (channel, app) = (release.channel, release.requires.app?.description) }
    }
}
