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
