internal import StepKit

/// The releases whose stores cannot update to the newest one: its `requires.from` excludes them, and no release that all machines
/// get leads to a version that it accepts.
struct LostWays {
    private let feed: Feed
    /// Every release that stores may have, also those that were dropped from the feed.
    private let installed: [Feed.Release]

    init(_ feed: Feed, after before: Feed?) {
        self.feed = feed
        let known = Set(feed.releases.map(\.version))
        installed = feed.releases + (before?.releases ?? []).filter { !known.contains($0.version) }
    }

    /// Returns a sentence for each newest release that some stores cannot reach, without those that `known` lacks, too.
    func warnings(except known: LostWays?) -> [String] {
        newest.compactMap { target in
            let before = known?.newest.first { $0.version == target.version }.flatMap { known?.lost(to: $0) } ?? []
            let lost = lost(to: target).filter { !before.contains($0) }
            guard let range = target.requires.from, !lost.isEmpty else { return nil }
            let names = lost.suffix(5).map(\.description).joined(separator: ", ")
            return
                "stores with \(names)\(lost.count > 5 ? " and \(lost.count - 5) older releases" : "") cannot update to \(target.version): "
                + "it requires an installed version \(range), and no release for all machines leads to one"
        }
    }

    /// The newest release of each line, and the newest one that all machines get.
    private var newest: [Feed.Release] {
        let offered = feed.releases.filter { $0.withdrawn == nil && ($0.rollout > 0 || !$0.groups.isEmpty) }
        let lines = Dictionary(grouping: offered) { PatchBases.Line($0) }.values
        let newest = lines.flatMap { line in [line.last, line.last { $0.rollout == 100 }].compactMap { $0 } }
        let versions = Set(newest.map(\.version))
        return feed.releases.filter { versions.contains($0.version) }
    }

    /// Returns the versions from which stores cannot reach a release. The search runs backwards, and examines each release once.
    private func lost(to target: Feed.Release) -> [Version] {
        let others = installed.filter { isBeside($0, target) && $0.version.precedes(target.version) }
        let steps = Set(feed.releases.filter { $0.withdrawn == nil && $0.rollout == 100 }.map(\.version))
        var index = VersionIndex(others.map(\.version))
        var reached: Set<Int> = []
        // A release without `requires.from` can be installed over every older one.
        var open: Version?
        var pending = [target]
        while let release = pending.popLast() {
            guard let range = release.requires.from else {
                if open.map({ $0.precedes(release.version) }) ?? true { open = release.version }
                continue
            }
            for position in index.take(in: range, before: release.version) {
                reached.insert(position)
                if steps.contains(others[position].version) { pending.append(others[position]) }
            }
        }
        return others.indices.filter { position in
            !reached.contains(position) && !(open.map { others[position].version.precedes($0) } ?? false)
        }.map { others[$0].version }.sorted { $0.precedes($1) }
    }

    /// Whether stores that are offered `target` may also have a release.
    private func isBeside(_ release: Feed.Release, _ target: Feed.Release) -> Bool {
        (release.channel == target.channel || release.channel == Feed.Release.defaultChannel)
            && (release.requires.app == nil || release.requires.app == target.requires.app)
    }
}
