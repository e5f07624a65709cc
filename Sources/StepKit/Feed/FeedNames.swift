/// The names of what lies beside a feed.
package enum FeedNames {
    /// The name from which the signatures of exactly this feed have theirs.
    ///
    /// Feed and signature are two files and cannot be replaced in one step; so a signature lies under the digest of its
    /// feed before that feed is there, and as long as somebody may still be reading it.
    package static func ofSignatures(_ name: String, digest: String) -> String { "\(name).\(digest.prefix(16))" }
}
