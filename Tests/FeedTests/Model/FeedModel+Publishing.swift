import MoultBasics
import MoultFiles
import MoultPublish
import MoultTransport
import MoultTrust
import StepKit
import Synchronization
import TestSupport

@testable import Moult

/// The commands of publishers, in this process.
extension FeedModel {
    func list(_ number: Int) -> String { scratch.path("keys/keys-\(number).json") }

    func makeList(_ release: SecretKey, _ timestamp: SecretKey) throws {
        var maker = KeyListMaker()
        (maker.product, maker.keys, maker.now, maker.days) = (Self.product, [root], now, 3650)
        if lists == 1 { maker.root.keys = [root.publicKey] }
        (maker.release.keys, maker.timestamp.keys) = ([release.publicKey], [timestamp.publicKey])
        _ = try maker.make(in: scratch.path("keys"))
    }

    /// Packs a release on a machine, with patches from the releases that the feed of this machine offers.
    func makeRelease(_ machine: Int?, _ version: Version, app: Int? = nil, from: ClosedRange<Int>? = nil) throws
        -> String
    {
        sequence += 1
        var facts = ModelRules.Facts(from: from)
        let bundle = [UInt8](repeating: UInt8(sequence & 0xff), count: 4096)
        try scratch.write("rel/\(version).tar", bundle)
        var manifest: JSON = [
            "manifest": 1, "product": .string(Self.product), "version": .string(version.description),
            // A thief would use the highest possible one.
            "sequence": .size(machine == nil ? (1 << 53) - 1 : sequence),
        ]
        let requires: JSON = .compact([
            "app": app.map { .string(">=\($0) <\($0 + 1)") },
            "from": from.map {
                .string(">=\(ModelRules.version($0.lowerBound)) <=\(ModelRules.version($0.upperBound))")
            },
        ])
        if app != nil || from != nil { manifest = manifest.setting("requires", to: requires) }
        manifest = try manifest.setting(
            "bundle",
            to: ["file": .string("\(version).tar"), "size": 4096, "sha256": .string(SHA256.digest(of: bundle).hex)]
        )
        .setting(
            "databases",
            to: ["a": Self.content(version).setting("kind", to: "reference").setting("member", to: "a.db")])
        if let machine {
            let own = try ownFeed(machine)
            let bases = own.map { PatchBases.offered(by: $0, before: version, newest: PatchBases.defaultCount) } ?? []
            facts.bases = Set(bases.map(ModelRules.number))
            guard facts.bases == ModelRules.bases(of: ModelRules.number(version), in: own) else {
                throw Violation(description: "\(version) is packed with patches from \(facts.bases.sorted())")
            }
            manifest = try manifest.setting(
                "patches", to: .array(bases.sorted { $0.precedes($1) }.map { try makePatch(from: $0, to: version) }))
        }
        rules.add(version, facts)
        return try scratch.write("rel/\(version).json", Array(manifest.pretty.utf8))
    }

    private func makePatch(from base: Version, to version: Version) throws -> JSON {
        let (file, bytes) = ("\(version).from-\(base).patch", Array("patch".utf8))
        try scratch.write("rel/\(file)", bytes)
        return try [
            "member": "a.db", "from": .string(base.description), "base": Self.content(base), "file": .string(file),
            "size": .size(bytes.count), "sha256": .string(SHA256.digest(of: bytes).hex),
        ]
    }

    /// Returns the size and the digest of the database of a release.
    private static func content(_ version: Version) throws -> JSON {
        try ["size": 4096, "sha256": .string(SHA256.digest(of: Array(version.description.utf8)).hex)]
    }

    /// Returns the versions over which a new release can be installed: a public release, and those after it.
    func floor(_ pick: Int, below version: Version, _ channel: String) throws -> ClosedRange<Int>? {
        let limit = ModelRules.number(version)
        let older = try publicFeed().releases.filter {
            $0.withdrawn == nil && ["stable", channel].contains($0.channel) && ModelRules.number($0.version) < limit
        }
        .map { ModelRules.number($0.version) }.sorted()
        return older.isEmpty ? nil : older[pick % older.count]...limit
    }

    func options(_ keys: [SecretKey]? = nil) -> PublishOptions {
        var options = PublishOptions()
        options.keys = keys ?? [release, timestamp]
        options.now = now
        options.fetchCommand = "file://\(scratch.path("away"))/feed.json"
        return options
    }

    struct Stopped: Error {}

    /// Publishes on a machine, checks what has become public, and returns whether the command has succeeded. `atFile` runs before
    /// the file with this number is copied.
    @discardableResult
    func publish(
        _ machine: Int, _ manifests: [String] = [], keys: [SecretKey]? = nil,
        atFile fault: (number: Int, body: () throws -> Void)? = nil, change: (inout PublishOptions) -> Void = { _ in }
    ) throws -> Bool {
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
        let before = stores.isEmpty || lastPublic.serial == 0 ? nil : try publicFeed()
        let report: PublishReport
        let patches = options.patches
        do { report = try FeedPublisher(scratch.path("m\(machine)"), options).publish(manifests) } catch let error
            as MoultError
        {
            try checkPublic(keepingPatches: patches)
            if error.outcome == .busy { return false }
            refusal = "\(error.what): \(error.why ?? "")"
            // The new keys would sign what another publisher has changed, or the release is withdrawn.
            let isExpected =
                error.what.hasPrefix("the public feed is not the one") || error.what.hasSuffix("cannot be rolled out")
                || error.what.hasSuffix("cannot be promoted to stable")
            if error.outcome == .refused, isExpected { return false }
            throw Violation(description: "publish failed: \(refusal)")
        } catch is Stopped {
            try checkPublic()
            return false
        }
        promised.formUnion(report.added.map(\.description).filter { !racing.contains($0) })
        promised.subtract(report.dropped.map(\.description))
        dropped.formUnion(report.dropped.map(\.description))
        warnings += report.warnings.map(\.description)
        try checkPublic(keepingPatches: patches)
        let lost = try promised.subtracting(publicFeed().releases.map(\.version.description))
        if !lost.isEmpty { throw Violation(description: "the public feed has lost \(lost.sorted())") }
        for store in stores { try rules.requireWarning(of: store, before, publicFeed(), warnings) }
        return true
    }

    func publicFeed() throws -> Feed {
        let path = scratch.path("away/feed.json")
        return try Feed(parsing: Files.read(path, limit: Feed.largest) ?? [], source: path)
    }

    /// The serials of the public feed only increase under each key list, and key lists never go back.
    func checkPublic(keepingPatches patches: Int? = nil) throws {
        let feed = try publicFeed()
        let next = (list: feed.keyList ?? 0, serial: feed.serial)
        if next < lastPublic { throw Violation(description: "the public feed went back from \(lastPublic) to \(next)") }
        if let patches, next != lastPublic { try rules.keepPatches(patches, feed) }
        lastPublic = next
        try rules.checkPatches(feed)
        if let back = feed.releases.first(where: { stable.contains($0.version) && $0.channel != "stable" }) {
            throw Violation(description: "\(back.version) is back in \(back.channel), although it was promoted")
        }
        if let back = feed.releases.first(where: { dropped.contains($0.version.description) }) {
            throw Violation(description: "\(back.version) is public again, although a command has dropped it")
        }
        moments.append(try feedFiles())
    }

    func feedFiles() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in try Files.list(scratch.path("away")) where name.hasPrefix("feed.json") || name.hasPrefix("keys-") {
            files[name] = try Files.read(scratch.path("away/\(name)"), limit: 1 << 24)
        }
        return files
    }

    func setFeedFiles(_ files: [String: [UInt8]]) throws {
        for name in try feedFiles().keys { try Files.remove(scratch.path("away/\(name)")) }
        for (name, bytes) in files { try Files.replace(scratch.path("away/\(name)"), with: bytes, durable: false) }
    }

    func version(_ pick: Int) throws -> Version {
        let releases = try publicFeed().releases
        return releases[pick % releases.count].version
    }

    func isPublic(_ version: String) throws -> Bool {
        try publicFeed().releases.contains { $0.version.description == version }
    }

    func ownFeed(_ machine: Int) throws -> Feed? {
        let path = scratch.path("m\(machine)/feed.json")
        return try Files.read(path, limit: Feed.largest).map { try Feed(parsing: $0, source: path) }
    }

    func publishedBy(_ machine: Int, _ version: String) throws -> Bool {
        try ownFeed(machine)?.releases.contains { $0.version.description == version } ?? false
    }
}
