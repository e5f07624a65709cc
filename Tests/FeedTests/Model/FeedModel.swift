import MoultBasics
import MoultFiles
import MoultPublish
import MoultTransport
import MoultTrust
import StepKit
import Synchronization
import TestSupport

@testable import Moult

/// A publisher with two machines, an attacker, and stores, whose histories are predicted by rules that do not share code with
/// moult. All run in this process, with the code that publishes and follows real feeds, and with a clock of their own.
final class FeedModel {
    /// One step of a history. A step contains all its choices, so that a history stays the same when others are removed.
    enum Step: CustomStringConvertible {
        case publish(machine: Int, line: Int, patch: Int, channel: String, rollout: Int, app: Bool)
        case roll(machine: Int, pick: Int, to: Int)
        case withdraw(machine: Int, pick: Int)
        case renew(machine: Int)
        case keep(machine: Int, count: Int)
        case rotate(machine: Int)
        /// The upload stops at this file; the same machine publishes again later.
        case fail(machine: Int, file: Int)
        /// While one machine uploads the feed, the other one publishes.
        case race(machine: Int, patch: Int)
        /// An attacker with the keys in force publishes a release; the owner then replaces the keys.
        case steal(serial: Int)
        case recover(machine: Int)
        /// A server returns the files of an earlier moment.
        case replay(pick: Int, store: Int)
        case wait(hours: Int)
        case poll(store: Int)

        var description: String {
            switch self {
            case .publish(let machine, let line, let patch, let channel, let rollout, let app):
                "publish m\(machine) \(line).0.\(patch) --channel \(channel) --rollout \(rollout)\(app ? "  # requires app" : "")"
            case .roll(let machine, let pick, let to): "roll m\(machine) release \(pick) --rollout \(to)"
            case .withdraw(let machine, let pick): "withdraw m\(machine) release \(pick)"
            case .renew(let machine): "renew m\(machine)"
            case .keep(let machine, let count): "renew m\(machine) --keep-releases \(count)"
            case .rotate(let machine): "rotate both keys on m\(machine)"
            case .fail(let machine, let file): "renew m\(machine), and the upload stops at file \(file)"
            case .race(let machine, let patch):
                "renew m\(machine), and during its upload m\(1 - machine) publishes 1.9.\(patch)"
            case .steal(let serial): "a thief publishes 9.9.9 with a serial \(serial) higher"
            case .recover(let machine): "m\(machine) replaces the stolen keys"
            case .replay(let pick, let store): "s\(store) gets the files of moment \(pick)"
            case .wait(let hours): "wait \(hours) hours"
            case .poll(let store): "apply s\(store)"
            }
        }
    }

    struct Violation: Error, CustomStringConvertible { let description: String }

    static let product = "org.example.model"
    let scratch: Scratch
    var now = Timestamp(seconds: 1_800_000_000)
    let root: SecretKey
    var release: SecretKey
    var timestamp: SecretKey
    var lists = 1
    /// Whether the keys in force are stolen.
    var isStolen = false
    var stores: [ModelStore] = []
    /// The files of the feed at each moment, by name.
    private var moments: [[String: [UInt8]]] = []
    private var sequence = 0
    /// The versions of a race, which may be overwritten until their publisher publishes again.
    private var racing: Set<String> = []
    /// The versions that a command has published with success, unless a later command has dropped them.
    private var promised: Set<String> = []
    private var lastPublic = (list: 0, serial: 0)
    /// Why the last command was refused.
    private var refusal = ""

    init(seed: Int) throws {
        scratch = try Scratch()
        (root, release, timestamp) = (try .generate(), try .generate(), try .generate())
        for name in ["away", "rel", "m0", "m1"] { try Files.makeDirectory(scratch.path(name)) }
        try Files.removeEmpty(scratch.path("m0"))
        try Files.removeEmpty(scratch.path("m1"))
        try scratch.write("rel/x.tar", Array("bundle".utf8))
        try makeList(release, timestamp)
        var random = SeededRandom(seed)
        for number in 0..<20 {
            let app = random.pick([nil, Version(1, 0, 0), Version(2, 0, 0)])
            stores.append(
                try ModelStore(
                    root: scratch.path("s\(number)"), machine: "\(seed)-\(number)",
                    channel: random.pick(["stable", "beta"]),
                    app: app, key: root.publicKey))
        }
        try publish(0, [makeRelease(1, 0, app: false)], first: true) {
            $0.isNew = true
            $0.changes = [.keyList(self.list(1))]
        }
    }

    // MARK: publishing

    private func list(_ number: Int) -> String { scratch.path("keys/keys-\(number).json") }

    private func makeList(_ release: SecretKey, _ timestamp: SecretKey) throws {
        var maker = KeyListMaker()
        (maker.product, maker.keys, maker.now, maker.days) = (Self.product, [root], now, 3650)
        if lists == 1 { maker.root.keys = [root.publicKey] }
        (maker.release.keys, maker.timestamp.keys) = ([release.publicKey], [timestamp.publicKey])
        _ = try maker.make(in: scratch.path("keys"))
    }

    private func makeRelease(
        _ line: Int, _ patch: Int, app: Bool, version given: String? = nil, sequence number: Int? = nil
    )
        throws -> String
    {
        sequence += 1
        let version = given ?? "\(line).0.\(patch)"
        let sha = try SHA256.digest(of: Array("bundle".utf8)).hex
        var manifest: JSON = [
            "manifest": 1, "product": .string(Self.product), "version": .string(version),
            "sequence": .size(number ?? sequence),
        ]
        if app { manifest = manifest.setting("requires", to: ["app": .string(">=\(line) <\(line + 1)")]) }
        manifest = manifest.setting("bundle", to: ["file": "x.tar", "size": 6, "sha256": .string(sha)])
            .setting(
                "databases",
                to: ["a": ["kind": "reference", "member": "a.db", "size": 4096, "sha256": .string(sha)]])
        return try scratch.write("rel/\(version).json", Array(manifest.pretty.utf8))
    }

    private func options(_ keys: [SecretKey]? = nil) -> PublishOptions {
        var options = PublishOptions()
        options.keys = keys ?? [release, timestamp]
        options.now = now
        options.fetchCommand = "file://\(scratch.path("away"))/feed.json"
        return options
    }

    private struct Stopped: Error {}

    /// Publishes on a machine, and checks what has become public. `atFile` runs before the file with this number is copied.
    private func publish(
        _ machine: Int, _ manifests: [String] = [], keys: [SecretKey]? = nil, first: Bool = false,
        atFile fault: (number: Int, body: () throws -> Void)? = nil, change: (inout PublishOptions) -> Void = { _ in }
    ) throws {
        var options = options(keys)
        change(&options)
        let away = scratch.path("away")
        nonisolated(unsafe) var count = 0
        nonisolated(unsafe) let fault = fault
        options.upload = UploadWay(name: "away") { name, environment in
            if let fault, count == fault.number { try fault.body() }
            count += 1
            let bytes = try Files.read(environment["MOULT_FILE"] ?? "", limit: 1 << 26) ?? []
            try Files.replace("\(away)/\(name)", with: bytes, durable: false)
        }
        let report: PublishReport
        do { report = try FeedPublisher(scratch.path("m\(machine)"), options).publish(manifests) } catch let error
            as MoultError
        {
            try checkPublic()
            // A change that stores could not follow, or another publisher.
            refusal = "\(error.what): \(error.why ?? "")"
            if [.refused, .busy].contains(error.outcome) { return }
            throw Violation(description: "publish failed: \(error.what): \(error.why ?? "")")
        } catch is Stopped { return try checkPublic() }
        promised.formUnion(report.added.map(\.description).filter { !racing.contains($0) })
        promised.subtract(report.dropped.map(\.description))
        try checkPublic()
        let lost = try promised.subtracting(publicFeed().releases.map(\.version.description))
        if !lost.isEmpty { throw Violation(description: "the public feed has lost \(lost.sorted())") }
    }

    private func publicFeed() throws -> Feed {
        let path = scratch.path("away/feed.json")
        return try Feed(parsing: Files.read(path, limit: Feed.largest) ?? [], source: path)
    }

    /// The serials of the public feed only increase under each key list, and key lists never go back.
    private func checkPublic() throws {
        let feed = try publicFeed()
        let next = (list: feed.keyList ?? 0, serial: feed.serial)
        if next < lastPublic { throw Violation(description: "the public feed went back from \(lastPublic) to \(next)") }
        lastPublic = next
        moments.append(try feedFiles())
    }

    private func feedFiles() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in try Files.list(scratch.path("away")) where name.hasPrefix("feed.json") || name.hasPrefix("keys-") {
            files[name] = try Files.read(scratch.path("away/\(name)"), limit: 1 << 24)
        }
        return files
    }

    private func setFeedFiles(_ files: [String: [UInt8]]) throws {
        for name in try feedFiles().keys { try Files.remove(scratch.path("away/\(name)")) }
        for (name, bytes) in files { try Files.replace(scratch.path("away/\(name)"), with: bytes, durable: false) }
    }

    private func version(_ pick: Int) throws -> Version {
        let releases = try publicFeed().releases
        return releases[pick % releases.count].version
    }

    private func isPublic(_ version: String) throws -> Bool {
        try publicFeed().releases.contains { $0.version.description == version }
    }

    // MARK: steps

    func perform(_ step: Step) throws {
        switch step {
        case .publish(let machine, let line, let patch, let channel, let rollout, let app):
            if try isPublic("\(line).0.\(patch)") { return }
            // Another machine may have this release in a feed that is not public.
            if try Files.facts(scratch.path("rel/\(line).0.\(patch).json")) != nil { return }
            try publish(machine, [makeRelease(line, patch, app: app)]) {
                ($0.channel, $0.rollout) = (channel, rollout)
            }
        case .roll(let machine, let pick, let share):
            let version = try version(pick)
            try publish(machine) { $0.changes = [.roll(version, to: share)] }
        case .withdraw(let machine, let pick):
            let version = try version(pick)
            try publish(machine) { $0.changes = [.withdraw(version, reason: "model")] }
        case .renew(let machine): try publish(machine)
        case .keep(let machine, let count): try publish(machine) { $0.keptReleases = count }
        case .rotate(let machine):
            if isStolen { return }
            try publish(machine)
            try replaceKeys(machine, isNew: false)
        case .fail(let machine, let file):
            try publish(machine, atFile: (file, { throw Stopped() }))
            try publish(machine)
        case .race(let machine, let patch):
            if try Files.facts(scratch.path("rel/1.9.\(patch).json")) != nil { return }
            let manifest = try makeRelease(1, patch, app: false, version: "1.9.\(patch)")
            racing = ["1.9.\(patch)"]
            try publish(machine, atFile: (patch % 4, { [self] in try publish(1 - machine, [manifest]) }))
            // The machine that made the overwritten feed finds it.
            let isDone = try publishedBy(1 - machine, "1.9.\(patch)")
            try publish(1 - machine)
            racing = []
            if isDone, try !isPublic("1.9.\(patch)") { throw Violation(description: "1.9.\(patch) was lost in a race") }
        case .steal(let serial): try steal(serial)
        case .recover(let machine):
            guard isStolen else { return }
            // A machine that has missed a change of keys cannot publish the next list; a new one continues the public feed.
            let candidates = [machine, 1 - machine, 2]
            try replaceKeys(candidates.first { try ($0 == 2 || ownFeed($0)?.keyList == lists) } ?? 2, isNew: true)
            isStolen = false
            try requireRecovery()
        case .replay(let pick, let store):
            let current = try feedFiles()
            try setFeedFiles(moments[pick % moments.count])
            defer { try? setFeedFiles(current) }
            try stores[store].poll(scratch.path("away"), now, isReplay: true)
        case .wait(let hours): now = Timestamp(seconds: now.seconds + hours * 3600)
        case .poll(let store): try stores[store].poll(scratch.path("away"), now, isReplay: false)
        }
    }

    private func ownFeed(_ machine: Int) throws -> Feed? {
        let path = scratch.path("m\(machine)/feed.json")
        return try Files.read(path, limit: Feed.largest).map { try Feed(parsing: $0, source: path) }
    }

    private func publishedBy(_ machine: Int, _ version: String) throws -> Bool {
        try ownFeed(machine)?.releases.contains { $0.version.description == version } ?? false
    }

    private func replaceKeys(_ machine: Int, isNew: Bool) throws {
        let (newRelease, newTimestamp) = (try SecretKey.generate(), try SecretKey.generate())
        lists += 1
        try makeList(newRelease, newTimestamp)
        let evil = Version(9, 9, 9)
        let own = try ownFeed(machine)
        let before = try publicFeed().keyList
        // Releases that only the other machine has are published again by hand.
        if isNew { promised = [] }
        try publish(machine, keys: isNew ? [newRelease, newTimestamp] : [newRelease, newTimestamp, timestamp]) {
            options in
            options.isNew = isNew && own != nil
            options.changes = [.keyList(self.list(self.lists))]
            if isNew, own?.release(evil)?.withdrawn == nil, own?.release(evil) != nil || own == nil {
                options.changes.append(.withdraw(evil, reason: "stolen key"))
            }
        }
        if try publicFeed().keyList == before {
            // The command was refused, and the keys stay.
            for name in try Files.list(scratch.path("keys")) where name.hasPrefix("keys-\(lists).json") {
                try Files.remove(scratch.path("keys/\(name)"))
            }
            lists -= 1
            if isNew { throw Violation(description: "the owner cannot replace the stolen keys: \(refusal)") }
            return
        }
        (release, timestamp) = (newRelease, newTimestamp)
    }

    /// The thief has the keys in force, but not the root key.
    private func steal(_ jump: Int) throws {
        if try isStolen || isPublic("9.9.9") { return }
        try Files.removeTree(scratch.path("m2"))
        if try Files.facts(scratch.path("rel/9.9.9.json")) != nil { return }
        isStolen = true
        try Files.removeTree(scratch.path("thief"))
        try Files.makeDirectory(scratch.path("thief"))
        for name in try Files.list(scratch.path("away")) {
            try Files.copy(scratch.path("away/\(name)"), to: scratch.path("thief/\(name)"), mode: 0o644)
        }
        let manifest = try makeRelease(9, 9, app: false, version: "9.9.9", sequence: (1 << 53) - 1)
        var options = PublishOptions()
        (options.keys, options.now) = ([release, timestamp], now)
        // A new store accepts no first serial above a million.
        options.serial = try min(publicFeed().serial + jump, 990_000)
        if try options.serial ?? 0 <= publicFeed().serial { options.serial = nil }
        _ = try FeedPublisher(scratch.path("thief"), options).publish([manifest])
        for name in try Files.list(scratch.path("thief")) where !name.hasPrefix(".") {
            let bytes = try Files.read(scratch.path("thief/\(name)"), limit: 1 << 24) ?? []
            try Files.replace(scratch.path("away/\(name)"), with: bytes, durable: false)
        }
        try checkPublic()
    }

    /// A store that followed the thief returns with the first feed under the new keys.
    private func requireRecovery() throws {
        for store in stores where store.installed?.version == Version(9, 9, 9) {
            try store.poll(scratch.path("away"), now, isReplay: false)
            let offers = try store.offered(by: publicFeed()) != nil
            if offers, store.installed?.version == Version(9, 9, 9) {
                throw Violation(description: "\(store.root) still has the release of the thief")
            }
        }
    }

    /// At the end the feed is renewed, and every store must have the newest release that it offers to it.
    func finish() throws {
        for machine in [0, 1] { try publish(machine) }
        for store in stores { try store.poll(scratch.path("away"), now, isReplay: false) }
    }
}
