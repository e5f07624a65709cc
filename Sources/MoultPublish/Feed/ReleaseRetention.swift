internal import StepKit

/// Determines which releases stay in a feed whose publisher keeps only the newest ones.
struct ReleaseRetention {
    /// The number of releases kept per channel.
    let count: Int

    /// Returns the releases that stay: the newest of each channel, all releases that stores need on the way to them, and
    /// withdrawn ones, so that their users are warned.
    func kept(of feed: Feed) -> [Feed.Release] {
        let releases = feed.releases.sorted { $0.sequence < $1.sequence }
        var kept: Set<Int> = []
        var pending: [Feed.Release] = []
        func keep(_ release: Feed.Release) {
            if kept.insert(release.sequence).inserted { pending.append(release) }
        }
        for (_, own) in Dictionary(grouping: releases.filter { $0.withdrawn == nil }, by: \.channel) {
            own.suffix(count).forEach(keep)
            // New stores need a release that all machines may install.
            own.last { $0.rollout == 100 }.map(keep)
            // Older apps may not be able to use the newest release.
            for (_, same) in Dictionary(grouping: own, by: { $0.requires.app?.description }) { same.last.map(keep) }
        }
        while let release = pending.popLast() {
            releases.filter { $0.withdrawn == nil && $0.leads(to: release) }.untilReachable().forEach(keep)
        }
        return releases.filter { kept.contains($0.sequence) || $0.withdrawn != nil }
    }
}

extension Feed.Release {
    /// Returns whether the other release requires a range of installed versions, and a store with this older release can be
    /// updated to it.
    fileprivate func leads(to release: Feed.Release) -> Bool {
        guard let range = release.requires.from, sequence < release.sequence else { return false }
        return (channel == release.channel || channel == Self.defaultChannel) && range.contains(version)
    }

    /// Whether every store can install the release, whichever release is installed.
    fileprivate var isForEveryStore: Bool {
        rollout == 100 && requires.from == nil && requires.app == nil && requires.moult == nil
    }
}

extension [Feed.Release] {
    /// Returns the newest of these releases, down to the newest one that every store can install: stores never need older ones.
    fileprivate func untilReachable() -> ArraySlice<Feed.Release> {
        suffix(from: lastIndex { $0.isForEveryStore } ?? startIndex)
    }
}
