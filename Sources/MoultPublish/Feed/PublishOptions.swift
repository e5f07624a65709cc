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
    package var rollout = 100
    package var groups: [String] = []
    /// The serial of the new feed; by default, one more than the last.
    package var serial: Int?
    /// The number of releases of each channel, before its newest one, from which patches are kept; nil for all in the feed.
    package var patches: Int?
    package var keptReleases: Int?
    package var upload: UploadWay?
    /// A URL, or a shell command that gets a public file, for a feed that is uploaded with `upload`.
    package var fetchCommand: String?
    package var isNew = false
    package var allowsUnsigned = false
    package var ignoresClock = false
    /// Gets what will change, before it is signed; throws to stop.
    package var announce: ((PublishPreview) throws -> Void)?
    package var wait = 0
    package var changes: [Change] = []
    /// Makes a trial installation of a release; nil for no trial.
    package var tryInstall: Trials.Install?
    package var now = Timestamp.now
    package init() {}

    /// Keeps one connection to the public feed for all files that the command reads back.
    private let connection = Transport()
    var publicPlace: PublicPlace? { fetchCommand.map { PublicPlace(source: $0, connection: connection) } }

    package enum Change: Sendable {
        /// Withdraws a release, with what is recommended to stores that have it.
        case withdraw(Version, reason: String, Feed.OnWithdrawn? = nil)
        case roll(Version, to: Int, groups: [String] = [])
        /// Offers a release to the stores of another channel, and to this percentage and these groups of them.
        case promote(Version, to: String, share: Int, groups: [String] = [])
        case trust([PublicKey], threshold: Int)
        /// The signed key list in this file, whose keys stores trust from now on.
        case keyList(String)
    }
}

package struct PublishReport: Sendable {
    package var feed: String
    package internal(set) var serial: Int
    package internal(set) var expires: Timestamp
    package let added: [Version]
    package let files: [String]
    package let signers: [KeyID]
    package let releases: Int
    package let isNew: Bool
    package let unsigned: [Version]
    /// Patches and bundles that were no longer needed and were removed.
    package internal(set) var removed: [String]
    package let dropped: [Version]
    package let uploaded: [String]
    /// The changes that were taken in from feeds that another publisher had overwritten.
    package internal(set) var takenIn: [String] = []
    package internal(set) var warnings: [Advice] = []
    package internal(set) var preview: PublishPreview?
}
