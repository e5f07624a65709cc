internal import MoultTrust
package import StepKit

/// A release that only keys have signed which the publisher has revoked since, as after the theft of a key. The store leaves it
/// by itself, and no version of such a release keeps a store from a release of the trusted feed.
package struct RevokedRelease: Sendable, Equatable {
    package let version: Version
    package let signers: [String]

    /// Nil if a key in force has signed the release, or a feed that lists it. Without a feed, only the keys count.
    package init?(_ generation: Generation, seal: Seal, keys: KeyChain?, feed: Feed?) throws {
        try self.init(
            generation.manifest.version, digest: SHA256.digest(of: generation.bytes).hex, signers: seal.signers ?? [],
            keys: keys, feed: feed)
    }

    /// Nil if a key in force has signed the manifest with this digest, or a feed that lists it.
    package init?(_ version: Version, digest: String, signers: [String], keys: KeyChain?, feed: Feed?) {
        guard let keys, keys.serial > 0, !signers.isEmpty else { return nil }
        let trusted = Set(keys.roles.release.entries.map(\.key.id.description))
        guard trusted.isDisjoint(with: signers) else { return nil }
        // After a usual change of keys, the new feed vouches for the releases that it lists.
        let isListed = feed?.releases.contains { $0.manifest.sha256 == digest && $0.withdrawn == nil } ?? false
        if isListed { return nil }
        (self.version, self.signers) = (version, signers)
    }

    /// Returns whether the installed release is such a release; nil if not, or if its records cannot be read.
    package static func installed(in store: StoreSnapshot, keys: KeyChain?, feed: Feed?) throws -> RevokedRelease? {
        // `moult status --deep` and `moult verify` report damaged records.
        guard let name = try store.installedName, let generation = try? store.generation(name),
            let seal = try? store.seal(of: generation)
        else { return nil }
        return try RevokedRelease(generation, seal: seal, keys: keys, feed: feed)
    }

    package var sentence: String {
        "release \(version) is signed only by \(signers.joined(separator: " and ")), which the publisher has revoked"
    }
}
