internal import StepKit

/// Determines which releases stay in a feed whose publisher keeps only the newest ones.
struct ReleaseRetention {
    let count: Int

    /// Returns the releases that stay: the newest of each channel, all releases that stores need on the way to them, and
    /// withdrawn ones, so that their users are warned.
    func kept(of feed: Feed) -> [Feed.Release] {
        let releases = feed.releases.sorted { $0.version.precedes($1.version) }
        var kept: Set<Version> = []
        var pending: [Feed.Release] = []
        func keep(_ release: Feed.Release) { if kept.insert(release.version).inserted { pending.append(release) } }
        for (_, own) in Dictionary(grouping: releases.filter { $0.withdrawn == nil }, by: \.channel) {
            own.suffix(count).forEach(keep)
            // Older apps may not be able to use the newest release, and new stores need one that all machines may install.
            for (_, same) in Dictionary(grouping: own, by: { PatchBases.Line($0) }) {
                same.last.map(keep)
                if let last = same.last(where: { $0.rollout == 100 }) {
                    keep(last)
                } else {
                    same.filter { $0.rollout > 0 || !$0.groups.isEmpty }.forEach(keep)
                }
            }
        }
        var channels = Dictionary(grouping: releases.filter { $0.withdrawn == nil }, by: \.channel).mapValues(
            Channel.init)
        while let release = pending.popLast() {
            guard let range = release.requires.from else { continue }
            let names: Set<String> = [release.channel, Feed.Release.defaultChannel]
            // A store with an older release can install this one first, whichever release it has.
            let start = names.compactMap { channels[$0]?.forEveryStore.newest(in: range, before: release.version) }
                .max { $0.precedes($1) }
            for name in names { channels[name]?.take(in: range, from: start, before: release.version).forEach(keep) }
        }
        return releases.filter { kept.contains($0.version) || $0.withdrawn != nil }
    }
}

extension Feed.Release {
    /// Whether every store can install the release, whichever release is installed.
    fileprivate var isForEveryStore: Bool {
        rollout == 100 && requires.from == nil && requires.app == nil && requires.moult == nil
    }
}

/// The releases of a channel, of which those that are kept are taken.
private struct Channel {
    private let releases: [Feed.Release]
    private var index: VersionIndex
    let forEveryStore: VersionIndex

    init(_ releases: [Feed.Release]) {
        self.releases = releases
        index = VersionIndex(releases.map(\.version))
        forEveryStore = VersionIndex(releases.filter(\.isForEveryStore).map(\.version))
    }

    mutating func take(in range: VersionRange, from start: Version?, before limit: Version) -> [Feed.Release] {
        index.take(in: range, from: start, before: limit).map { releases[$0] }
    }
}
