package import MoultBasics

/// The keys that may sign key lists, manifests and feeds.
package struct KeyRoles: Sendable, Equatable {
    /// The keys that sign the next key list.
    package var root: TrustedKeys
    /// The keys that sign manifests.
    package var release: TrustedKeys
    /// The keys that only sign feeds; nil if the release keys also sign feeds.
    package var timestamp: TrustedKeys?
    /// The time after which no key is trusted until a newer list arrives.
    package var expires: Timestamp?

    package init(
        root: TrustedKeys, release: TrustedKeys, timestamp: TrustedKeys? = nil, expires: Timestamp? = nil
    ) {
        (self.root, self.release, self.timestamp, self.expires) = (root, release, timestamp, expires)
    }

    /// Creates roles with one set of keys for all of them, as in a store's settings and in key lists of format 1.
    package init(all keys: TrustedKeys) { self.init(root: keys, release: keys) }

    /// The IDs of the keys that sign releases and feeds.
    package var all: [String] {
        var ids: [String] = []
        for entry in release.entries + feed.entries where !ids.contains(entry.key.id.description) {
            ids.append(entry.key.id.description)
        }
        return ids
    }

    /// The keys that sign feeds.
    package var feed: TrustedKeys { timestamp ?? release }

    /// Whether each manifest needs its own signatures. Otherwise the same keys sign feeds and manifests, and the digest
    /// in a signed feed proves a manifest.
    package var isSplit: Bool { timestamp != nil }
}
