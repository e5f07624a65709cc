package import MoultBasics

/// The rights of keys.
package struct KeyRoles: Sendable, Equatable {
    /// Sign the next key list.
    package var root: TrustedKeys
    /// Sign manifests.
    package var release: TrustedKeys
    /// Sign feeds, and nothing else; nil if the release keys sign feeds, too.
    package var timestamp: TrustedKeys?
    /// After this, nothing is trusted until a newer list arrives.
    package var expires: Timestamp?

    package init(
        root: TrustedKeys, release: TrustedKeys, timestamp: TrustedKeys? = nil, expires: Timestamp? = nil
    ) {
        (self.root, self.release, self.timestamp, self.expires) = (root, release, timestamp, expires)
    }

    /// One set of keys for everything: the keys in a store's settings, and key lists of format 1.
    package init(all keys: TrustedKeys) { self.init(root: keys, release: keys) }

    /// The keys that sign feeds.
    package var feed: TrustedKeys { timestamp ?? release }

    /// Whether each manifest needs signatures of its own. Otherwise the keys that sign the feed are those that sign
    /// manifests, and the digest in a signed feed proves a manifest.
    package var isSplit: Bool { timestamp != nil }
}
