import MoultBasics
import MoultFiles
import MoultTransport
import MoultTrust
import StepKit

@testable import Moult

/// A store of the model: it reads and chooses with the code of real stores, and only records what it would install.
final class ModelStore {
    struct Installed: Equatable {
        let version: Version
        let digest: String
        let signers: [String]
    }

    let root: String
    private let machine: Machine
    private let channel: String
    private let app: Version?
    private let layout: StoreLayout
    private var settings: Settings
    private(set) var installed: Installed?
    private var seen = (list: 0, serial: 0)

    init(root: String, machine: String, channel: String, app: Version?, key: PublicKey) throws {
        (self.root, self.channel, self.app) = (root, channel, app)
        self.machine = Machine(id: machine)
        layout = try StoreLayout(root: root)
        settings = Settings(product: FeedModel.product)
        settings.keys = TrustedKeys([.init(key: key)])
        try Files.makeDirectory(root)
        try Files.makeDirectory("\(root)/.moult")
    }

    /// Follows the feed once, and compares the result with the rules.
    func poll(_ place: String, _ now: Timestamp, isReplay: Bool) throws {
        let reader = FeedReader(
            layout: layout, settings: settings, places: [.file("\(place)/feed.json")], transport: Transport(),
            allowUnsigned: false, isConfigured: true, allowOlder: false, now: now)
        let current: FeedReader.Current
        do { current = try reader.ask { try $0.keep() } } catch let error as MoultError {
            guard error.outcome == .refused, isReplay || isExpired(place, now) else {
                throw FeedModel.Violation(description: "\(root) refuses the feed: \(error.what): \(error.why ?? "")")
            }
            return
        }
        let feed = current.feed
        let next = (list: current.keys?.serial ?? 0, serial: feed.serial)
        if next < seen { throw FeedModel.Violation(description: "\(root) went back from \(seen) to \(next)") }
        if feed.expires < now { throw FeedModel.Violation(description: "\(root) accepts an expired feed") }
        seen = next
        for file in current.files {
            try Files.ensureDirectory(layout.feed)
            try Files.replace("\(layout.feed)/\(file.name)", with: file.bytes, durable: false)
        }
        try current.seen.write(layout, durable: false)
        try install(from: feed, current.keys, place)
    }

    /// Whether no feed was published in time, which is a fault of the publisher and not of the store.
    private func isExpired(_ place: String, _ now: Timestamp) -> Bool {
        let path = "\(place)/feed.json"
        guard let bytes = try? Files.read(path, limit: Feed.largest), let feed = try? Feed(parsing: bytes, source: path)
        else {
            return false
        }
        return feed.expires < now
    }

    private func install(from feed: Feed, _ keys: KeyChain?, _ place: String) throws {
        let revoked = installed.flatMap {
            RevokedRelease($0.version, digest: $0.digest, signers: $0.signers, keys: keys, feed: feed)
        }
        let choice = try FeedChoice(
            feed: feed, installed: installed?.version, revoked: revoked, channel: channel,
            holds: Holds.read(layout, settings), policy: Policy(follow: .newer, appVersion: app, moultVersion: .moult),
            machine: machine
        ).choose()
        let expected = expected(feed, keys)
        if let next = choice.way.last {
            guard choice.way.count == 1, let keys else {
                throw FeedModel.Violation(description: "\(root) takes a detour")
            }
            let path = "\(place)/\(next.manifest.name)"
            let bytes = try Files.read(path, limit: Manifest.largest) ?? []
            let signers = try keys.verify(bytes, named: path, by: keys.roles.release) {
                try Files.read($0, limit: Provenance.largestSignature)
            }
            installed = Installed(
                version: next.version, digest: next.manifest.sha256, signers: signers.map(\.description))
        }
        guard installed?.version == expected else {
            throw FeedModel.Violation(
                description: "\(root) has \(installed.map { "\($0.version)" } ?? "nothing") instead of "
                    + "\(expected.map { "\($0)" } ?? "nothing") of serial \(feed.serial)")
        }
    }

    // MARK: the rules

    /// Returns the release that this store must have after it has read a feed.
    private func expected(_ feed: Feed, _ keys: KeyChain?) -> Version? {
        guard let newest = offered(by: feed) else { return installed?.version }
        guard let installed else { return newest }
        let trusted = Set(keys?.roles.release.entries.map(\.key.id.description) ?? [])
        let isListed = feed.releases.contains { $0.manifest.sha256 == installed.digest && $0.withdrawn == nil }
        if trusted.isDisjoint(with: installed.signers), !isListed { return newest }
        return Self.number(newest) > Self.number(installed.version) ? newest : installed.version
    }

    /// Returns the newest release that a feed offers to this store.
    func offered(by feed: Feed) -> Version? {
        feed.releases.filter { release in
            guard release.withdrawn == nil, release.channel == "stable" || release.channel == channel else {
                return false
            }
            if release.requires.app != nil, app?.major != release.version.major { return false }
            // A place that cannot be computed is a violation of its own.
            let position = (try? machine.rolloutPosition(for: release.version, of: FeedModel.product)) ?? 0
            return position < Double(release.rollout)
        }
        .map(\.version).max { Self.number($0) < Self.number($1) }
    }

    private static func number(_ version: Version) -> Int {
        version.major * 1_000_000 + version.minor * 1000 + version.patch
    }
}
