package import MoultBasics
internal import MoultFiles
package import MoultTrust
package import StepKit

/// Chooses the release of a feed that a store should install, and the releases to install before it.
package struct FeedChoice: Sendable {
    let feed: Feed
    let installed: Version?
    /// The installed release, if only revoked keys have signed it: it keeps the store from no release.
    let revoked: RevokedRelease?
    /// What the store does about its installed release, if that was withdrawn.
    let onWithdrawn: Feed.OnWithdrawn?
    let channel: String
    let holds: Holds
    let policy: Policy
    let machine: Machine
    /// The only release to install, even if it is of another channel or not yet rolled out to this machine; nil for the newest.
    let only: Version?
    private var isAvailable: @Sendable (Feed.Release) throws -> Bool

    package struct Skipped: Sendable, Equatable {
        package let version: Version
        package let why: String
    }

    package struct Result: Sendable, Equatable {
        /// The releases to install, in order; empty if the store is up to date or can install none.
        package var way: [Feed.Release] = []
        /// Whether the manifest of the first release in `way` is missing, and no other release can be installed.
        package var isMissing = false
        package var skipped: [Skipped] = []
        /// A note on the staged rollout of the last release in `way`.
        package var note: String?
        /// The newest release of the store's channel, and when this machine gets it.
        package var rollout: Rollout?
        /// Why the publisher withdrew the installed release.
        package var withdrawn: String?
        package var onWithdrawn: Feed.OnWithdrawn?
        /// The installed release, if only revoked keys have signed it.
        package var revoked: RevokedRelease?

        var hasNext: Bool { !way.isEmpty && !isMissing }
        package var unreadable: String {
            let manifest = way.count > 1 ? "the manifest of \(way[0].version)" : "its manifest"
            return "\(way.last.map { "\($0.version)" } ?? "") is in the feed, but \(manifest) cannot be read"
        }
    }

    package init(
        feed: Feed, installed: Version?, revoked: RevokedRelease? = nil, onWithdrawn: Feed.OnWithdrawn? = nil,
        channel: String, holds: Holds, policy: Policy, machine: Machine, only: Version? = nil,
        isAvailable: @escaping @Sendable (Feed.Release) throws -> Bool = { _ in true }
    ) {
        (self.feed, self.installed, self.revoked) = (feed, installed, revoked)
        self.onWithdrawn = onWithdrawn
        (self.channel, self.holds) = (channel, holds)
        (self.policy, self.machine, self.only, self.isAvailable) = (policy, machine, only, isAvailable)
    }

    package func choose() throws -> Result {
        let result = try chooseAvailable()
        let isNewer = result.way.last.map { next in floor.map { $0.precedes(next.version) } ?? true } ?? false
        if isNewer || result.skipped.isEmpty { return result }
        // A store whose next manifest is missing is not up to date, and does not go back to an older release instead.
        var complete = self
        complete.isAvailable = { _ in true }
        var wanted = try complete.chooseAvailable()
        if wanted.way == result.way { return result }
        wanted.isMissing = !wanted.way.isEmpty
        return wanted
    }

    /// The version that every release must exceed, unless older ones are accepted.
    private var floor: Version? { revoked == nil && onWithdrawn != .newest ? installed : nil }
    private var withdrawn: String? { installed.flatMap { feed.release($0)?.withdrawn } }

    private func chooseAvailable() throws -> Result {
        var result = Result()
        // A feed may have very many releases, which take longer to copy than to examine.
        let releases = feed.releases
        let newest = releases.indices.filter { isOurs(releases[$0].channel) && releases[$0].withdrawn == nil }
            .max { releases[$0].version.precedes(releases[$1].version) }
        result.rollout = try newest.map { releases[$0].version }
            .map { Rollout($0, position: try machine.rolloutPosition(for: $0, of: feed.product)) }
        result.revoked = revoked
        (result.withdrawn, result.onWithdrawn) = (withdrawn, onWithdrawn)
        let wanted = releases.indices.filter { index in
            if let only { return releases[index].version == only }
            return isOurs(releases[index].channel)
                && (policy.takesOlder || floor.map { $0.precedes(releases[index].version) } ?? true)
        }
        var search = WaySearch(floor, among: releases) {
            try (isOurs($0.channel) || $0.version == only) && obstacle(to: $0).why == nil
        }
        for release in wanted.sorted(by: { releases[$1].version.precedes(releases[$0].version) }).map({ releases[$0] })
        {
            let (why, note) = try obstacle(to: release)
            if let why {
                result.skipped.append(Skipped(version: release.version, why: why))
                continue
            }
            // The newest available release is already installed.
            if release.version == floor { return result }
            guard let way = try search.way(to: release) else {
                result.skipped.append(
                    Skipped(
                        version: release.version,
                        why:
                            "it requires an installed version \(release.requires.from.map { "\($0)" } ?? ""), and no release in the feed leads to such a version"
                    ))
                continue
            }
            result.way = way
            result.note = note
            return result
        }
        return result
    }

    /// Returns whether a channel is this store's channel, or the usual one, whose releases every store gets.
    private func isOurs(_ other: String) -> Bool { other == channel || other == Feed.Release.defaultChannel }

    /// Returns why this store must not install a release, or a remark on the rollout.
    private func obstacle(to release: Feed.Release) throws -> (why: String?, note: String?) {
        if let reason = release.withdrawn { return ("it was withdrawn: \(reason)", nil) }
        if let why = holds.obstacle(to: release.version) { return (why, nil) }
        if let range = release.requires.app {
            guard let app = policy.appVersion else {
                return ("it requires app \(range), and this store does not know the version of the app", nil)
            }
            if !range.contains(app) { return ("it requires app \(range), but the app is \(app)", nil) }
        }
        if let range = release.requires.moult, !range.contains(policy.moultVersion) {
            return ("it requires moult \(range), but this is \(policy.moultVersion)", nil)
        }
        if try !isAvailable(release) { return ("its manifest is not in the directory of the feed", nil) }
        guard release.rollout < 100 else { return (nil, nil) }
        let place = try machine.rolloutPosition(for: release.version, of: feed.product)
        let text = "it is rolled out to \(release.share), and this machine is included from \(place) %"
        if let group = machine.group, release.groups.contains(group) {
            return (nil, "it is rolled out to \(release.share), and this machine is in \(group)")
        }
        return place < Double(release.rollout) || release.version == only ? (nil, text) : (text, nil)
    }
}

extension Settings {
    /// Returns what the store does about its installed release: nil unless the publisher has withdrawn it.
    /// The operator's setting decides, and without it the publisher's recommendation. A recommendation counts only if release keys
    /// have signed it: a stolen timestamp key must not be able to take stores back to an older release.
    package func onWithdrawn(_ installed: Version?, in feed: Feed, keys: KeyRoles?) -> Feed.OnWithdrawn? {
        guard let release = installed.flatMap({ feed.release($0) }), release.withdrawn != nil else { return nil }
        if let onWithdrawn { return onWithdrawn }
        guard let keys, !keys.isSplit || release.isRecommendation(ofProduct: feed.product, signedBy: keys.release)
        else { return .keep }
        return release.onWithdrawn ?? .keep
    }
}

extension Feed.Release {
    fileprivate func isRecommendation(ofProduct product: String, signedBy keys: TrustedKeys) -> Bool {
        guard let bytes = recommendation(of: product) else { return false }
        let name = Self.recommendationName
        do {
            _ = try keys.verify(bytes, named: name) { wanted in
                try recommendedBy.map { Array($0.utf8) }.first {
                    try TrustedKeys.signatureName(of: name, by: Signature(file: $0, named: name).keyID) == wanted
                }
            }
            return true
        } catch {
            // The store keeps the release, as without a recommendation.
            return false
        }
    }
}

/// Identifies this machine, for staged rollouts.
package struct Machine: Sendable, Equatable {
    let id: String
    /// The group of the machine in rollouts. The first machines are included in every percentage but zero.
    let group: String?

    package init(id: String, group: String? = nil) { (self.id, self.group) = (id, group) }

    /// Returns this machine, with the group of a store. Its ID is MOULT_MACHINE_ID if that is set, otherwise systemd's machine ID, otherwise the host
    /// name.
    package static func this(_ group: String? = nil) throws -> Machine {
        if let id = try ProcessEnvironment.value("MOULT_MACHINE_ID") { return Machine(id: id, group: group) }
        for path in ["/etc/machine-id", "/etc/hostname"] {
            let text = String(decoding: try Files.read(path, limit: 4096) ?? [], as: UTF8.self)
            if let line = text.split(whereSeparator: \.isWhitespace).first {
                return Machine(id: String(line), group: group)
            }
        }
        return Machine(id: "", group: group)
    }

    /// Returns the position of this machine in the rollout of a release: 0 up to, but not including, 100, with two decimals. It
    /// is constant for a release and differs between releases, so that the first machines are not always the same.
    package func rolloutPosition(for version: Version, of product: String) throws -> Double {
        if group == Feed.Release.firstGroup { return 0 }
        return Double(try Self.number(below: 10_000, "\(product)\n\(version)\n\(id)")) / 100
    }

    /// Returns a number that is constant for a text, and evenly distributed.
    private static func number(below limit: Int, _ text: String) throws -> Int {
        let digest = try SHA256.digest(of: Array(text.utf8))
        let number = digest.bytes.prefix(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int((number * UInt64(limit)) >> 32)
    }

    /// Returns the delay before this store's request, in milliseconds, within the given number of seconds.
    /// Timers start at the same moment on many machines. The delay depends on machine and store, so that their requests are
    /// spread out, and on the feed's serial, so that the last machines are not always the same.
    package func pause(within seconds: Int, store: String, serial: Int) throws -> Int {
        try Self.number(below: 1000 * seconds, "\(serial)\n\(id)\n\(store)")
    }
}

/// The order in which a store tries the locations of its feed: group by group, shuffled within each group.
/// Each store always uses the same order, so that caches of web servers and registries stay useful. The order differs between
/// stores, so that equal mirrors share the load.
package struct MirrorOrder {
    private let store: String

    init(_ layout: StoreLayout) throws { self.init(machine: try .this(), store: try Files.absolute(layout.root)) }
    package init(machine: Machine, store: String) { self.store = "\(machine.id)\n\(store)" }

    package func addresses(of feed: FeedSettings) throws -> [Address] {
        try feed.groups.flatMap { group -> [Address] in
            // The rank does not depend on the query, because a token in the query may change.
            let ranked = try group.map { (rank: try rank(of: $0.description), address: $0) }
            return ranked.sorted { $0.rank < $1.rank }.map(\.address)
        }
    }

    private func rank(of place: String) throws -> String { try SHA256.digest(of: Array("\(store)\n\(place)".utf8)).hex }
}
