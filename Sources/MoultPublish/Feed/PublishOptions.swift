package import MoultBasics
internal import MoultTransport
package import MoultTrust
package import StepKit

/// The publisher's choices for publishing, in addition to the releases.
package struct PublishOptions {
    /// The signing keys; the signature by the first key has minisign's usual name. Without keys, the feed is not signed.
    package var keys: [SecretKey] = []
    /// The number of days for which the feed is valid. The feed must be published again within that time.
    package var days = 30
    package var channel = Feed.Release.defaultChannel
    /// The percentage of machines that get the releases.
    package var rollout = 100
    /// The groups of machines that get the releases at any percentage.
    package var groups: [String] = []
    /// The serial of the new feed; by default, one more than the last.
    package var serial: Int?
    /// The number of releases of each channel, before its newest one, from which patches are kept; nil for all in the feed.
    package var patches: Int?
    /// The number of releases kept per channel; nil for all.
    package var keptReleases: Int?
    /// Copies each new file to another place.
    package var upload: UploadWay?
    /// A URL, or a shell command that gets a public file, for a feed that is uploaded with `upload`.
    package var fetchCommand: String?
    /// Whether this is the first feed at its place.
    package var isNew = false
    /// Whether a feed without signatures may be made.
    package var allowsUnsigned = false
    /// Whether to publish although the clock contradicts the previous feed.
    package var ignoresClock = false
    /// Gets what will change, before it is signed; throws to stop.
    package var announce: ((PublishPreview) throws -> Void)?
    /// Seconds to wait for another publisher.
    package var wait = 0
    package var changes: [Change] = []
    /// Makes a trial installation of a release; nil for no trial.
    package var tryInstall: Trials.Install?
    package var now = Timestamp.now
    package init() {}

    /// Keeps one connection to the public feed for all files that the command reads back.
    private let connection = Transport()
    var publicPlace: PublicPlace? { fetchCommand.map { PublicPlace(source: $0, connection: connection) } }

    /// A change to releases or keys that are already in the feed.
    package enum Change: Sendable {
        /// Withdraws a release, with what is recommended to stores that have it.
        case withdraw(Version, reason: String, Feed.OnWithdrawn? = nil)
        /// Changes the percentage of machines and, if they are given, the groups.
        case roll(Version, to: Int, groups: [String] = [])
        /// Offers a release to the stores of another channel, and to this percentage and these groups of them.
        case promote(Version, to: String, share: Int, groups: [String] = [])
        /// The keys that stores should trust from now on.
        case trust([PublicKey], threshold: Int)
        /// The signed key list in this file, whose keys stores trust from now on.
        case keyList(String)
    }
}

/// The result of publishing.
package struct PublishReport: Sendable {
    package var feed: String
    package internal(set) var serial: Int
    package internal(set) var expires: Timestamp
    package let added: [Version]
    package let files: [String]
    package let signers: [KeyID]
    package let releases: Int
    /// Whether the directory had no feed before.
    package let isNew: Bool
    /// The releases that were in the feed before its first signature.
    package let unsigned: [Version]
    /// Patches and bundles that were no longer needed and were removed.
    package internal(set) var removed: [String]
    /// The releases that were removed from the feed.
    package let dropped: [Version]
    /// The files that the publisher's command has copied.
    package let uploaded: [String]
    /// The changes that were taken in from feeds that another publisher had overwritten.
    package internal(set) var takenIn: [String] = []
    package internal(set) var warnings: [Advice] = []
    package internal(set) var preview: PublishPreview?
}
