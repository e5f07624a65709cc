package import MoultBasics

/// The list of a product's releases that stores follow: `feed.json`, signed. Format 1.
package struct Feed: Sendable, Equatable {
    package static let format = 1
    package static let fileName = "feed.json"
    /// The largest feed that is read.
    package static let largest = 16 << 20

    package var product: String
    /// Counts the feed's own versions upward, so that an old one cannot pass for the present one.
    package var serial: Int
    package var created: Timestamp?
    /// After this time the feed is invalid, so that withheld feeds are noticed.
    package var expires: Timestamp
    package var releases: [Release]
    /// The key list that it was made under; nil for the pinned keys, and in feeds of earlier versions.
    package var keyList: Int?

    /// The highest serial: above it JSON readers may round.
    package static let highestSerial = 1 << 53 - 1
    /// How far a serial may be from the last one under the same key list: a stolen key cannot use up all numbers, so that
    /// nothing of the publisher's would ever be newer.
    package static let serialRange = 1_000_000

    package init(
        product: String, serial: Int, created: Timestamp?, expires: Timestamp, releases: [Release], keyList: Int? = nil
    ) {
        (self.product, self.serial, self.created, self.keyList) = (product, serial, created, keyList)
        (self.expires, self.releases) = (expires, releases)
    }

    /// One release, with what must be known of it before its manifest is fetched.
    package struct Release: Sendable, Equatable {
        package static let usualChannel = "stable"

        package var version: Version
        package var sequence: Int
        package var channel: String
        package var manifest: File
        package var requires: Manifest.Requires
        /// The share of machines that may have it, in per cent.
        package var rollout: Int
        /// Why it must not be installed any more; nil if it may.
        package var withdrawn: String?
        /// The patches of its manifest that are kept next to the feed.
        package var patches: [Patch] = []

        package struct Patch: Sendable, Equatable {
            package var from: Version
            package var file: String
            package init(from: Version, file: String) { (self.from, self.file) = (from, file) }
        }

        package init(
            version: Version, sequence: Int, channel: String = usualChannel, manifest: File,
            requires: Manifest.Requires = .init(), rollout: Int = 100, withdrawn: String? = nil
        ) {
            (self.version, self.sequence, self.channel) = (version, sequence, channel)
            (self.manifest, self.requires) = (manifest, requires)
            (self.rollout, self.withdrawn) = (rollout, withdrawn)
        }
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
    /// The base name of the signatures of exactly this feed.
    ///
    /// Feed and signature are two files and cannot be replaced in one step; so a signature has the digest of its feed in its
    /// name, is public before that feed is, and stays as long as a store may still be reading it.
    package static func ofSignatures(_ name: String, digest: String) -> String { "\(name).\(digest.prefix(16))" }

    /// Those of the files next to a feed that are signatures of feeds which no reader can have any more: not `kept`, and not
    /// under the digest of the feed that exists now or of the one before it.
    package static func staleSignatures(among names: [String], keeping kept: [String], digests: [String]) -> [String] {
        let early = digests.map { ofSignatures(Feed.fileName, digest: $0) + "." }
        return names.filter { name in
            name.hasPrefix("\(Feed.fileName).") && name.hasSuffix(".minisig") && !kept.contains(name)
                && !early.contains { name.hasPrefix($0) }
        }
    }
}
