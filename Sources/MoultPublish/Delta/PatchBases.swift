package import StepKit

/// The releases from which stores may update to a new release, and which therefore need patches.
package enum PatchBases {
    /// The default number of releases of each channel from which `pack` makes patches.
    package static let defaultCount = 3

    /// Returns the versions of the newest releases of each channel of a feed that stores may have; `count` is nil for all. A release
    /// that is being rolled out has stores. A withdrawn one has them, too, but none may install it any more.
    package static func offered(by feed: Feed, newest count: Int? = nil) -> Set<Version> {
        let offered = feed.releases.filter { $0.withdrawn == nil }
        let channels = Dictionary(grouping: offered, by: \.channel).values
        return Set(channels.flatMap { releases in releases.suffix(count ?? releases.count).map(\.version) })
    }

    /// Returns whether patches from a release stay in the feed. The stores of a withdrawn release need them to leave it. With
    /// `count`, the publisher keeps only those from the newest releases of each channel before the newest one.
    static func keeping(_ feed: Feed, newest count: Int?) -> Set<Version> {
        guard let count else { return Set(feed.releases.map(\.version)) }
        return count == 0 ? [] : offered(by: feed, newest: count + 1)
    }
}
