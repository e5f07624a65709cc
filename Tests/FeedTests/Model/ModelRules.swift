import MoultBasics
import StepKit

/// What the model knows of its releases, and the rules for patches and for `requires.from`. They share no code with moult.
final class ModelRules {
    struct Facts {
        /// The installed versions over which the release can be installed; nil for all.
        var from: ClosedRange<Int>?
        /// The releases from which the release has patches.
        var bases: Set<Int> = []
    }

    private(set) var facts: [Int: Facts] = [:]
    /// The bases that a release must have in each feed that has both, by release.
    private var promised: [Int: Set<Int>] = [:]

    static func number(_ version: Version) -> Int {
        version.major * 1_000_000 + version.minor * 1000 + version.patch
    }

    static func version(_ number: Int) -> Version {
        Version(number / 1_000_000, number / 1000 % 1000, number % 1000)
    }

    func add(_ version: Version, _ facts: Facts) { self.facts[Self.number(version)] = facts }

    // MARK: requires.from

    /// Returns the newest release that can be installed over a version, directly or after others; the version itself if none can.
    func newest(over installed: Int, among offered: [Int]) -> Int {
        var reached: Set<Int> = [installed]
        for release in offered.sorted() where release > installed {
            let from = facts[release]?.from
            if from.map({ range in reached.contains { range.contains($0) } }) ?? true { reached.insert(release) }
        }
        return reached.max() ?? installed
    }

    /// Returns whether a release can be installed directly over another one.
    func isDirect(_ release: Int, over installed: Int) -> Bool {
        facts[release]?.from?.contains(installed) ?? true
    }

    /// Throws if a store cannot reach the newest release that it is offered, although it could before releases were dropped.
    func requireWays(of store: ModelStore, _ before: Feed, _ after: Feed) throws {
        func numbers(_ feed: Feed) -> Set<Int> { Set(store.offered(by: feed).map(Self.number)) }
        let (old, left) = (numbers(before), numbers(after))
        guard let newest = left.max() else {
            if old.isEmpty { return }
            throw FeedModel.Violation(description: "a new store like \(store.root) finds no release any more")
        }
        for start in facts.keys where start < newest {
            guard self.newest(over: start, among: Array(old.union(left))) == newest,
                self.newest(over: start, among: Array(left)) != newest
            else { continue }
            throw FeedModel.Violation(
                description: "a store like \(store.root) with \(start) has no way to \(newest) any more")
        }
    }

    /// Throws if a command has taken away the way of a store to the newest release, and no warning of any command says so.
    func requireWarning(of store: ModelStore, _ before: Feed?, _ after: Feed, _ warnings: [String]) throws {
        guard let before else { return }
        let offered = store.offered(by: after).map(Self.number)
        let forAll = Set(after.releases.filter { $0.rollout == 100 }.map { Self.number($0.version) })
        guard let newest = offered.max(), forAll.contains(newest) else { return }
        let old = store.offered(by: before).map(Self.number)
        for start in Set(old).union(offered) where start < newest && self.newest(over: start, among: offered) != newest
        {
            let couldBefore = !old.contains(newest) || self.newest(over: start, among: old) == newest
            if !couldBefore || warnings.contains(where: { $0.contains("cannot update to \(Self.version(newest))") }) {
                continue
            }
            throw FeedModel.Violation(
                description: "no warning says that a store like \(store.root) cannot go from \(start) to \(newest)")
        }
    }

    // MARK: patches

    /// Returns the releases from which `pack` must make patches: the newest three of each channel that the feed offers.
    static func bases(of release: Int, in feed: Feed?) -> Set<Int> {
        var bases: Set<Int> = []
        for channel in ["stable", "beta"] {
            let offered = (feed?.releases ?? []).filter { $0.channel == channel && $0.withdrawn == nil }
                .map { number($0.version) }.filter { $0 < release }
            bases.formUnion(offered.sorted().suffix(3))
        }
        return bases
    }

    /// Throws if a feed lacks a patch of a release from another release that it has.
    func checkPatches(_ feed: Feed) throws {
        let there = Set(feed.releases.map { Self.number($0.version) })
        for release in feed.releases {
            let number = Self.number(release.version)
            guard let made = facts[number]?.bases else { continue }
            let needed = promised[number] ?? made.intersection(there)
            promised[number] = needed
            let missing = needed.intersection(there).subtracting(release.patches.map { Self.number($0.from) })
            guard let base = missing.min() else { continue }
            throw FeedModel.Violation(
                description: "\(release.version) has no patch from \(base) any more, which serial \(feed.serial) offers"
            )
        }
    }

    /// Records that a publisher keeps only patches from the newest releases of each channel and each requirement of an app.
    func keepPatches(_ count: Int, _ feed: Feed) throws {
        let groups = Dictionary(grouping: feed.releases.filter { $0.withdrawn == nil }) {
            "\($0.channel) \($0.requires.app.map { "\($0)" } ?? "")"
        }
        let kept = Set(groups.values.flatMap { $0.map { Self.number($0.version) }.sorted().suffix(count + 1) })
        try checkPatches(feed, keeping: count == 0 ? [] : kept)
    }

    private func checkPatches(_ feed: Feed, keeping kept: Set<Int>) throws {
        for release in promised.keys { promised[release]?.formIntersection(kept) }
        try checkPatches(feed)
        for release in feed.releases {
            guard let patch = release.patches.first(where: { !kept.contains(Self.number($0.from)) }) else { continue }
            throw FeedModel.Violation(description: "\(release.version) still has a patch from \(patch.from)")
        }
    }
}
