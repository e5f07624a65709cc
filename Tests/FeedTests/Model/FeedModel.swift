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
    let rules = ModelRules()
    var stores: [ModelStore] = []
    /// The files of the feed at each moment, by name.
    var moments: [[String: [UInt8]]] = []
    var sequence = 0
    /// The versions of a race, which may be overwritten until their publisher publishes again.
    var racing: Set<String> = []
    /// The versions that a command has published with success, unless a later command has dropped them.
    var promised: Set<String> = []
    /// The releases that a command has dropped from the feed.
    var dropped: Set<String> = []
    /// The releases that a command has promoted.
    var stable: Set<Version> = []
    var lastPublic = (list: 0, serial: 0)
    /// The warnings of all commands.
    var warnings: [String] = []
    /// Why the last command was refused.
    var refusal = ""

    init(seed: Int) throws {
        scratch = try Scratch()
        (root, release, timestamp) = (try .generate(), try .generate(), try .generate())
        for name in ["away", "rel", "m0", "m1"] { try Files.makeDirectory(scratch.path(name)) }
        try Files.removeEmpty(scratch.path("m0"))
        try Files.removeEmpty(scratch.path("m1"))
        try makeList(release, timestamp)
        var random = SeededRandom(seed)
        for number in 0..<20 {
            let app = random.pick([nil, Version(1, 0, 0), Version(2, 0, 0)])
            stores.append(
                try ModelStore(
                    root: scratch.path("s\(number)"),
                    machine: Machine(
                        id: "\(seed)-\(number)", group: [nil, nil, "first", "canaries"][number % 4]),
                    channel: random.pick(["stable", "beta"]),
                    app: app, key: root.publicKey, rules))
        }
        try publish(0, [makeRelease(0, Version(1, 0, 0))]) {
            $0.isNew = true
            $0.changes = [.keyList(self.list(1))]
        }
    }

    // MARK: steps

    func perform(_ step: Step) throws {
        switch step {
        case .publish(let machine, let line, let patch, let channel, let rollout, let groups, let app, let from):
            if try isPublic("\(line).0.\(patch)") { return }
            // Another machine may have this release in a feed that is not public.
            if try Files.facts(scratch.path("rel/\(line).0.\(patch).json")) != nil { return }
            let version = Version(line, 0, patch)
            let manifest = try makeRelease(
                machine, version, app: app ? line : nil, from: from.flatMap { try floor($0, below: version, channel) })
            try publish(machine, [manifest]) {
                ($0.channel, $0.rollout, $0.groups) = (channel, rollout, groups)
            }
        case .roll(let machine, let pick, let share):
            let version = try version(pick)
            try publish(machine) { $0.changes = [.roll(version, to: share)] }
        case .promote(let machine, let pick, let share):
            let beta = try publicFeed().releases.filter { $0.channel == "beta" && $0.withdrawn == nil }
            if beta.isEmpty { return }
            let version = beta[pick % beta.count].version
            guard try publish(machine, change: { $0.changes = [.promote(version, to: "stable", share: share)] }) else {
                return
            }
            guard let release = try publicFeed().release(version), release.channel == "stable", release.rollout == share
            else { throw Violation(description: "\(version) is not in stable, to which it was promoted") }
            stable.insert(version)
        case .withdraw(let machine, let pick):
            let version = try version(pick)
            try publish(machine) { $0.changes = [.withdraw(version, reason: "model")] }
        case .renew(let machine): try publish(machine)
        case .renewOften(let machine): for _ in 0..<17 { try publish(machine) }
        case .keep(let machine, let count):
            let before = try publicFeed()
            guard try publish(machine, change: { $0.keptReleases = count }) else { return }
            for store in stores { try rules.requireWays(of: store, before, publicFeed()) }
        case .keepPatches(let machine, let count):
            try publish(machine) { $0.patches = count }
        case .rotate(let machine):
            if isStolen { return }
            try publish(machine)
            try replaceKeys(machine, isNew: false)
        case .fail(let machine, let file):
            try publish(machine, atFile: (file, { throw Stopped() }))
            try publish(machine)
        case .race(let machine, let patch):
            if try Files.facts(scratch.path("rel/1.9.\(patch).json")) != nil { return }
            let manifest = try makeRelease(1 - machine, Version(1, 9, patch))
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

    /// At the end the feed is renewed, and every store must have the newest release that it offers to it.
    func finish() throws {
        for machine in [0, 1] { try publish(machine) }
        for store in stores { try store.poll(scratch.path("away"), now, isReplay: false) }
    }
}
