internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// The last verified feed, as the store has saved it.
package enum SavedFeed {
    /// Nil if the feed was never requested, or if the saved copy is not the verified one.
    package static func read(_ layout: StoreLayout) throws -> Feed? {
        let path = "\(layout.feed)/\(Feed.fileName)"
        guard let bytes = try Files.read(path, limit: Feed.largest),
            try SHA256.digest(of: bytes).hex == ReplayGuard.read(layout).sha256
        else { return nil }
        return try Feed(parsing: bytes, source: path)
    }
}
