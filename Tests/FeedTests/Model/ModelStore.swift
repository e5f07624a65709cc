import MoultBasics
import MoultFiles
import MoultTransport
import MoultTrust
import StepKit

@testable import Moult

/// A store of the model: it reads and chooses with the code of real stores, and only records what it would install.
final class ModelStore {
    struct Installed {
        let manifest: Manifest
        let digest: String
        let signers: [String]
        var version: Version { manifest.version }
    }

    let root: String
    private let machine: Machine
    private let channel: String
    private let app: Version?
    private let rules: ModelRules
    private let layout: StoreLayout
    private var settings: Settings
    private(set) var installed: Installed?
    private var seen = (list: 0, serial: 0)

    init(root: String, machine: Machine, channel: String, app: Version?, key: PublicKey, _ rules: ModelRules)
        throws
    {
        (self.root, self.channel, self.app, self.rules) = (root, channel, app, rules)
        self.machine = machine
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
        guard let keys else { throw FeedModel.Violation(description: "\(root) has no keys") }
        try requireShortest(choice.way.map(\.version), isFirst: installed == nil || revoked != nil)
        for next in choice.way { try install(next, keys, place) }
        guard installed.map({ ModelRules.number($0.version) }) == expected else {
            throw FeedModel.Violation(
                description: "\(root) has \(installed.map { "\($0.version)" } ?? "nothing") instead of "
                    + "\(expected.map { "\($0)" } ?? "nothing") of serial \(feed.serial)")
        }
    }

    /// Throws if a release of the way cannot be installed over the one before it, or is not needed.
    private func requireShortest(_ way: [Version], isFirst: Bool) throws {
        let way = (isFirst ? [] : [installed].compactMap { $0?.version }) + way
        for (index, next) in way.enumerated().dropFirst() {
            let before = way[..<index].map { rules.isDirect(ModelRules.number(next), over: ModelRules.number($0)) }
            if before.last == true, !before.dropLast().contains(true) { continue }
            throw FeedModel.Violation(description: "\(root) takes the way \(way)")
        }
    }

    /// Records a release as installed after its files were verified as a store does: its signatures, its bundle, and its patch from
    /// the installed release, if the feed lists one.
    private func install(_ next: Feed.Release, _ keys: KeyChain, _ place: String) throws {
        let path = "\(place)/\(next.manifest.name)"
        let bytes = try Files.read(path, limit: Manifest.largest) ?? []
        let signers = try keys.verify(bytes, named: path, by: keys.roles.release) {
            try Files.read($0, limit: Provenance.largestSignature)
        }
        let manifest = try Manifest(parsing: bytes, as: .sealed, source: path)
        var files = manifest.bundle.map { [($0.file, $0.size)] } ?? []
        if let installed, next.patches.contains(where: { $0.from == installed.version }) {
            let listed = Set(next.patches.map(\.file))
            guard let needed = manifest.worthwhilePatches(from: installed.manifest, among: { listed.contains($0.file) })
            else {
                throw FeedModel.Violation(description: "\(root) cannot use the patch from \(installed.version)")
            }
            files += needed.map { ($0.file, $0.size) }
        }
        for (name, size) in files where try Files.facts("\(place)/\(name)")?.size != size {
            throw FeedModel.Violation(description: "\(root) does not find \(name) of \(next.version)")
        }
        installed = Installed(
            manifest: manifest, digest: next.manifest.sha256, signers: signers.map(\.description))
    }

    // MARK: the rules

    /// Returns the release that this store must have after it has read a feed.
    private func expected(_ feed: Feed, _ keys: KeyChain?) -> Int? {
        let offered = offered(by: feed).map(ModelRules.number)
        guard let installed else { return offered.max() }
        let trusted = Set(keys?.roles.release.entries.map(\.key.id.description) ?? [])
        let isListed = feed.releases.contains { $0.manifest.sha256 == installed.digest && $0.withdrawn == nil }
        if trusted.isDisjoint(with: installed.signers), !isListed, let newest = offered.max() { return newest }
        return rules.newest(over: ModelRules.number(installed.version), among: offered)
    }

    /// Returns the releases that a feed offers to this store.
    func offered(by feed: Feed) -> [Version] {
        feed.releases.filter { release in
            guard release.withdrawn == nil, release.channel == "stable" || release.channel == channel else {
                return false
            }
            if release.requires.app != nil, app?.major != release.version.major { return false }
            if machine.group == "first" { return release.rollout > 0 }
            if let group = machine.group, release.groups.contains(group) { return true }
            // A place that cannot be computed is a violation of its own.
            let position = (try? machine.rolloutPosition(for: release.version, of: FeedModel.product)) ?? 0
            return position < Double(release.rollout)
        }
        .map(\.version)
    }
}
