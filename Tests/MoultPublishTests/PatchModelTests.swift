import MoultBasics
import MoultFiles
import MoultPublish
import MoultTrust
import StepKit
import TestSupport
import Testing

/// Random sequences of publishers' commands in this process: no release in the feed loses the patches from the releases that
/// stores may have, and a command changes nothing that it was not asked to change.
@Suite struct PatchModelTests {
    enum Command {
        case release(channel: String, rollout: Int)
        case renew, again
        case roll(Int, to: Int)
        case withdraw(Int)
        case keep(Int)
    }

    @Test func `no base that a feed offers loses its patch`() throws {
        var numbers = SeededRandom(53)
        for history in 1...40 {
            let commands = (1...14).map { _ in Self.command(&numbers) }
            if let fault = try Self.fault(in: commands) {
                let short = try Self.shrunk(commands)
                Issue.record("history \(history): \(try Self.fault(in: short) ?? fault) after \(short)")
                return
            }
        }
    }

    private static func command(_ numbers: inout SeededRandom) -> Command {
        switch Int.random(in: 0..<16, using: &numbers) {
        case 0..<7:
            .release(
                channel: Bool.random(using: &numbers) ? "stable" : "beta",
                rollout: [100, 10, 99, 1].randomElement(using: &numbers) ?? 100)
        case 7..<9: .renew
        case 9: .again
        case 10..<12: .roll(Int.random(in: 0..<8, using: &numbers), to: Int.random(in: 1...100, using: &numbers))
        case 12..<14: .withdraw(Int.random(in: 0..<8, using: &numbers))
        default: .keep(Int.random(in: 1...4, using: &numbers))
        }
    }

    private static func shrunk(_ commands: [Command]) throws -> [Command] {
        var short = commands
        var index = 0
        while index < short.count {
            var shorter = short
            shorter.remove(at: index)
            if try fault(in: shorter) != nil { short = shorter } else { index += 1 }
        }
        return short
    }

    /// Returns the first thing that is wrong while the commands run in a new directory.
    private static func fault(in commands: [Command]) throws -> String? {
        let world = try PatchWorld()
        for (index, command) in commands.enumerated() {
            if let fault = try world.run(command) { return "command \(index + 1), \(command): \(fault)" }
        }
        return nil
    }
}

/// A feed, and a directory with releases whose files have arbitrary content: what the files are does not matter to a feed.
private final class PatchWorld {
    private let scratch: Scratch
    private var count = 0
    private var last: String?
    /// The files that the world expects in each release, by base.
    private var patches: [Version: [Version: String]] = [:]

    init() throws {
        scratch = try Scratch()
        try Files.makeDirectory(scratch.path("rel"))
    }

    private func feed() throws -> Feed? {
        try Files.read(scratch.path("public/feed.json"), limit: 1 << 20).map { try Feed(parsing: $0, source: "feed") }
    }

    /// Runs a command, and returns what is wrong afterwards.
    func run(_ command: PatchModelTests.Command) throws -> String? {
        guard let before = try feed() else {
            try release("stable", 100)
            return try fault(since: nil, removed: [])
        }
        var options = PublishOptions()
        options.allowsUnsigned = true
        let versions = before.releases.map(\.version)
        var manifests: [String] = []
        switch command {
        case .release(let channel, let rollout):
            let removed = try release(channel, rollout)
            if let fault = try fault(since: before, removed: removed) { return fault }
            return try feed()?.releases.dropLast() == before.releases[...] ? nil : "other releases changed"
        case .renew: break
        case .again:
            guard let last, let entry = before.releases.last, entry.withdrawn == nil else { return nil }
            manifests = [last]
            (options.channel, options.rollout) = (entry.channel, entry.rollout)
        case .roll(let index, let share):
            let version = versions[index % versions.count]
            if before.release(version)?.withdrawn != nil { return nil }
            options.changes = [.roll(version, to: share)]
        case .withdraw(let index): options.changes = [.withdraw(versions[index % versions.count], reason: "bad")]
        case .keep(let count): options.keptReleases = count
        }
        let report = try FeedPublisher(scratch.path("public"), options).publish(manifests)
        if let fault = try fault(since: before, removed: report.removed) { return fault }
        guard let after = try feed() else { return "the feed is gone" }
        switch command {
        case .renew, .again: return after.releases == before.releases ? nil : "a renewal changed the releases"
        case .roll, .withdraw:
            let isSame = zip(after.releases, before.releases).allSatisfy {
                $0.patches == $1.patches && $0.version == $1.version
            }
            return isSame ? nil : "other fields changed"
        default: return nil
        }
    }

    /// Makes a release with a patch from each release that the feed offers, and publishes it.
    @discardableResult
    private func release(_ channel: String, _ rollout: Int) throws -> [String] {
        count += 1
        let version = Version(count, 0, 0)
        func file(_ name: String, size: Int) throws -> (sha256: String, size: Int) {
            let bytes = Array((name + String(repeating: ".", count: size - name.utf8.count)).utf8)
            try Files.writeNew(bytes, to: scratch.path("rel/\(name)"))
            return (try SHA256.digest(of: bytes).hex, size)
        }
        func digest(_ number: Version) throws -> JSON { .string(try SHA256.digest(of: Array("\(number)".utf8)).hex) }
        let bundle = try file("test-\(version).tar.zst", size: 400)
        var list: [JSON] = []
        for base in try feed()?.releases ?? [] where base.withdrawn == nil {
            let name = "test-\(version).from-\(base.version).patch"
            let patch = try file(name, size: 60)
            patches[version, default: [:]][base.version] = name
            list.append([
                "member": "food.db", "from": .string("\(base.version)"),
                "base": ["size": 4096, "sha256": try digest(base.version)],
                "file": .string(name), "size": .size(patch.size), "sha256": .string(patch.sha256),
            ])
        }
        let manifest: JSON = [
            "manifest": 1, "product": "org.example.test", "version": .string("\(version)"), "sequence": .size(count),
            "bundle": [
                "file": .string("test-\(version).tar.zst"), "size": .size(bundle.size),
                "sha256": .string(bundle.sha256),
            ],
            "patches": .array(list),
            "databases": [
                "food": ["kind": "reference", "member": "food.db", "size": 4096, "sha256": try digest(version)]
            ],
        ]
        let path = scratch.path("rel/test-\(version).json")
        try Files.writeNew(Array(manifest.pretty.utf8), to: path)
        last = path
        var options = PublishOptions()
        options.allowsUnsigned = true
        (options.channel, options.rollout) = (channel, rollout)
        return try FeedPublisher(scratch.path("public"), options).publish([path]).removed
    }

    private func fault(since before: Feed?, removed: [String]) throws -> String? {
        guard let feed = try feed() else { return "the feed is gone" }
        let versions = Set(feed.releases.map(\.version))
        var listed: Set<String> = []
        for release in feed.releases {
            let wanted = (patches[release.version] ?? [:]).filter { versions.contains($0.key) }
            let found = Dictionary(release.patches.map { ($0.from, $0.file) }) { first, _ in first }
            guard found == wanted, found.count == release.patches.count else {
                return "\(release.version) has patches from \(found.keys), not from \(wanted.keys)"
            }
            listed.formUnion(found.values)
        }
        let files = try Set(Files.list(scratch.path("public")).filter { $0.hasSuffix(".patch") })
        if files != listed { return "the files are \(files), not \(listed)" }
        let gone = Set((before?.releases ?? []).flatMap(\.patches).map(\.file)).subtracting(listed)
        let said = Set(removed.filter { $0.hasSuffix(".patch") })
        return gone == said ? nil : "\(gone) went, and the report says \(said)"
    }
}
