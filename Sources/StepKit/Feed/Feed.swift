package import MoultBasics

/// The signed list of a product's releases, which stores follow: `feed.json`, format 1.
package struct Feed: Sendable, Equatable {
    package static let format = 1
    package static let fileName = "feed.json"
    /// The maximum size of a feed in bytes, enough for about 100,000 releases.
    package static let largest = 32 << 20

    /// The advice to a store for an invalid feed.
    package static let reportFault: Advice = "Report this to the publisher."

    package var product: String
    /// The number of this feed. Each new feed has a higher one, so that an attacker cannot present an old feed as the current
    /// one.
    package var serial: Int
    package var created: Timestamp?
    /// After this time the feed is invalid, so that a store notices if newer feeds are withheld from it.
    package var expires: Timestamp
    package var releases: [Release]
    /// The number of the key list in effect when the feed was made; nil for the pinned keys, and in feeds of earlier
    /// versions.
    package var keyList: Int?
    /// The SHA-256 of the feeds that this one follows, newest first, so that the next publisher finds a feed that another
    /// publisher has overwritten.
    package var previous: [String] = []
    /// The maximum number of digests in `previous`.
    package static let longestPast = 16

    /// The maximum by which a serial may exceed the last one under the same key list, so that an attacker with a stolen key
    /// cannot use up all numbers and lock out the publisher.
    package static let serialRange = 1_000_000

    package init(
        product: String, serial: Int, created: Timestamp?, expires: Timestamp, releases: [Release], keyList: Int? = nil
    ) {
        (self.product, self.serial, self.created, self.keyList) = (product, serial, created, keyList)
        (self.expires, self.releases) = (expires, releases)
    }

    /// A release, with the facts that a store needs before it fetches the manifest.
    package struct Release: Sendable, Equatable {
        package static let defaultChannel = "stable"

        package var version: Version
        package var sequence: Int
        package var channel: String
        package var manifest: File
        package var requires: Manifest.Requires
        /// The percentage of machines that may install the release.
        package var rollout: Int
        /// The groups of machines that may install the release at any percentage.
        package var groups: [String] = []
        /// The group in the settings of machines that are the first in every rollout.
        package static let firstGroup = "first"
        /// Why the release must no longer be installed; nil if it may be installed.
        package var withdrawn: String?
        /// What the publisher recommends to stores that have the withdrawn release.
        package var onWithdrawn: OnWithdrawn?
        /// The signatures of release keys on the recommendation, if feed keys may not sign releases.
        package var recommendedBy: [String] = []

        /// The bytes that release keys sign to recommend something; nil without a recommendation.
        package func recommendation(of product: String) -> [UInt8]? {
            onWithdrawn.map {
                Array("moult onWithdrawn\n\(product)\n\(version)\n\(manifest.sha256)\n\($0.rawValue)\n".utf8)
            }
        }
        package static let recommendationName = "recommendation"
        /// The patches of the manifest whose files are next to the feed.
        package var patches: [Patch] = []

        package struct Patch: Sendable, Equatable {
            package var from: Version
            package var file: String
            package init(from: Version, file: String) { (self.from, self.file) = (from, file) }
        }

        package init(
            version: Version, sequence: Int, channel: String = defaultChannel, manifest: File,
            requires: Manifest.Requires = .init(), rollout: Int = 100, withdrawn: String? = nil
        ) {
            (self.version, self.sequence, self.channel) = (version, sequence, channel)
            (self.manifest, self.requires) = (manifest, requires)
            (self.rollout, self.withdrawn) = (rollout, withdrawn)
        }
    }

    /// What a store does if its installed release was withdrawn, and the feed has no newer one.
    package enum OnWithdrawn: String, Sendable, CaseIterable {
        /// The store keeps the release, and warns.
        case keep
        /// The store goes back to the newest kept release that was not withdrawn.
        case rollback
        /// The store installs the newest release that the feed offers, even if it is older.
        case newest
    }

    /// A file next to the feed.
    package struct File: Sendable, Equatable {
        package var name: String
        package var size: Int
        package var sha256: String
        package init(name: String, size: Int, sha256: String) {
            (self.name, self.size, self.sha256) = (name, size, sha256)
        }
    }

    package func release(_ version: Version) -> Release? { releases.first { $0.version == version } }
}

/// The names of files next to a feed.
package enum FeedNames {
    /// Returns the base name of the signatures of the feed with this digest. Feed and signature are two files and cannot be
    /// replaced in one step. So the name of a signature contains the digest of its feed, and the signature is published before
    /// the feed and stays as long as a store may still be reading that feed.
    package static func ofSignatures(_ name: String, digest: String) -> String { "\(name).\(digest.prefix(16))" }

    /// Returns the names of the signatures next to the feed that no reader needs any more: those that are not in `kept`, and do
    /// not belong to the current or the previous feed.
    package static func staleSignatures(among names: [String], keeping kept: [String], digests: [String]) -> [String] {
        let prefixes = digests.map { ofSignatures(Feed.fileName, digest: $0) + "." }
        return names.filter { name in
            name.hasPrefix("\(Feed.fileName).") && name.hasSuffix(".minisig") && !kept.contains(name)
                && !prefixes.contains { name.hasPrefix($0) }
        }
    }
}

extension Feed {
    fileprivate static let digestForm = "must be 64 hexadecimal digits in lower case"

    /// Reads a feed whose signature was verified; `source` names it in errors.
    package init(parsing bytes: [UInt8], source: String) throws {
        let fields = try Fields(JSON(parsing: bytes, source: source)) { place, why, now in
            MoultError(.feed, .refused, what: "\(source): \(place) \(why)", now: now ?? Self.reportFault)
        }
        let format = try fields.integer("feed")
        guard format == Self.format else {
            throw fields.fail(
                "feed", "is format \(format), and this version of moult reads format \(Self.format)",
                now: format > Self.format ? "Install a newer moult." : nil)
        }
        let product = try fields.string("product")
        if let fault = PlainName.productFault(product) { throw fields.fail("product", "\"\(product)\" \(fault)") }
        let serial = try fields.count("serial")
        guard serial >= 1 else { throw fields.fail("serial", "must be at least 1") }
        let keyList = try fields.optionalCount("keys")
        guard let expires = try fields.optionalTime("expires") else { throw fields.fail("expires", "is missing") }
        // Unknown fields of a newer feed are ignored, unless the feed lists them as critical.
        let critical = Set(try fields.critical())
        let created = try fields.optionalTime("created")
        let previous = try fields.optionalStrings("previous") ?? []
        if let index = previous.firstIndex(where: { !isDigest($0) }) {
            throw fields.fail("previous[\(index)]", Self.digestForm)
        }
        guard fields.json("releases") != nil else { throw fields.fail("releases", "is missing") }
        self.init(
            product: product, serial: serial, created: created, expires: expires,
            releases: try fields.objects("releases") { try Release($0, critical: critical) }, keyList: keyList)
        self.previous = previous
        try Self.refuse(critical, fields)
        try requireDistinct(fields)
    }

    fileprivate static func refuse(_ critical: Set<String>, _ fields: Fields) throws {
        guard !critical.isEmpty, let name = fields.unknown.first(where: critical.contains) else { return }
        throw fields.fail(
            name, "is not known to this version of moult, and the feed says that it is critical",
            now: "Install a newer moult.")
    }

    /// Throws if two releases have the same version. Releases of several lines may have the same sequence.
    private func requireDistinct(_ fields: Fields) throws {
        var versions: Set<Version> = []
        for index in releases.indices where !versions.insert(releases[index].version).inserted {
            throw fields.fail("releases[\(index)].version", "is listed twice: \(releases[index].version)")
        }
    }
}

extension Feed.Release {
    fileprivate init(_ fields: Fields, critical: Set<String>) throws {
        let text = try fields.string("version")
        guard let version = Version(text), text.utf8.count <= 128 else {
            throw fields.fail("version", "\"\(text)\" is not a SemVer version")
        }
        let rollout = try fields.optionalCount("rollout") ?? 100
        guard rollout <= 100 else {
            throw fields.fail("rollout", "must be a percentage of at most 100, but is \(rollout)")
        }
        let channel = try fields.optionalString("channel") ?? Self.defaultChannel
        if let fault = PlainName.databaseFault(channel) { throw fields.fail("channel", "\"\(channel)\" \(fault)") }
        let part = try fields.object("manifest")
        let manifest = try Feed.File(part)
        guard manifest.size <= Manifest.largest else {
            throw part.fail("size", "must be at most \(Manifest.largest), but is \(manifest.size)")
        }
        self.init(
            version: version, sequence: try fields.count("sequence"), channel: channel, manifest: manifest,
            requires: try fields.requires(), rollout: rollout,
            withdrawn: try fields.optionalString("withdrawn"))
        onWithdrawn = try fields.word("onWithdrawn", Feed.OnWithdrawn.self)
        groups = try fields.optionalStrings("groups") ?? []
        recommendedBy = try fields.optionalStrings("recommendedBy") ?? []
        patches = try fields.objects("patches").map { part in
            guard let from = Version(try part.string("from")) else { throw part.fail("from", "is not a version") }
            let file = try part.string("file")
            if let fault = PlainName.fault(file) { throw part.fail("file", "\"\(file)\" \(fault)") }
            return Patch(from: from, file: file)
        }
        try Feed.refuse(critical, fields)
    }
}

extension Feed.File {
    fileprivate init(_ fields: Fields) throws {
        let name = try fields.string("file")
        if let fault = PlainName.fault(name) { throw fields.fail("file", "\"\(name)\" \(fault)") }
        let sha256 = try fields.string("sha256")
        guard isDigest(sha256) else { throw fields.fail("sha256", Feed.digestForm) }
        self.init(name: name, size: try fields.count("size"), sha256: sha256)
    }
}

/// Returns whether a text is a SHA-256 as manifests and feeds contain it.
func isDigest(_ text: String) -> Bool { text.utf8.count == 64 && text.utf8.allSatisfy(ManifestReader.isHex) }

extension Feed {
    /// The feed as JSON, with its fields in a fixed order; parsing this JSON gives an equal feed.
    package var json: JSON {
        .record([
            "feed": Self.format, "product": product, "serial": serial, "keys": keyList, "created": created?.description,
            "expires": expires.description, "previous": previous.unlessEmpty, "releases": releases.map(\.json),
        ])
    }
}

extension Feed.Release {
    /// The machines of a rollout.
    package var share: String { Self.share(rollout, groups) }

    package static func share(_ rollout: Int, _ groups: [String]) -> String {
        let share = rollout == 100 ? "all machines" : "\(rollout) % of machines"
        if groups.isEmpty || rollout == 100 { return share }
        return (rollout == 0 ? "the machines" : "\(share) and those") + " of \(groups.joined(separator: ", "))"
    }

    package var json: JSON {
        .record([
            "version": version.description, "sequence": sequence,
            "channel": channel == Self.defaultChannel ? nil : channel,
            "manifest": JSON.record(["file": manifest.name, "size": manifest.size, "sha256": manifest.sha256]),
            "requires": requires.json.unlessEmpty, "rollout": rollout == 100 ? nil : rollout,
            "groups": groups.unlessEmpty, "withdrawn": withdrawn, "onWithdrawn": onWithdrawn?.rawValue,
            "recommendedBy": recommendedBy.unlessEmpty,
            "patches": patches.map { JSON.record(["from": $0.from.description, "file": $0.file]) }.unlessEmpty,
        ])
    }
}
