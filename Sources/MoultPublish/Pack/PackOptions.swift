package import MoultArchive
internal import MoultFiles
internal import MoultLibc
package import StepKit

/// The publisher's choices for packing, in addition to the draft.
package struct PackOptions {
    /// The directory for manifest and bundle, which is created if it does not exist.
    package var output = "releases"
    package var level = 12
    /// The number of threads: one per core. Each needs some tens of megabytes, so the number is limited.
    package var threads = min(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), 16)
    package var format = ArchiveKind.tar(.zstd)
    /// The name of manifest and bundle without extension; files from an earlier pack with this name are replaced. By default,
    /// the name consists of product and version, and each version can be packed only once.
    package var name: String?
    /// The number of the newest releases in the output directory, of each channel of its feed, from which patches are made.
    package var patches = PatchBases.defaultCount
    package var deltaFrom: [String] = []
    /// Manifests of older releases over which the new release is installed for trial, in addition to those in the output
    /// directory. The new release is compared with the first of them, or otherwise with the newest in the output directory.
    package var previous: [String] = []
    package var compare: (_ old: Subject, _ new: Subject) throws -> ReleaseDiff = { try ReleaseDiff(from: $0, to: $1) }
    package var checkTime = CheckTime(isTrial: true)
    /// Makes a trial installation of a release; nil for no trial.
    package var tryInstall: Trials.Install?
    /// Why a trial cannot run a step of the release; nil if it runs it.
    package var whyNotRun: (_ step: String) -> String? = { _ in nil }
    /// Whether to pack even if files differ from the checked-out commit.
    package var allowDirty = false
    package var defines: [String: String] = [:]
    package var environment = ProcessEnvironment.all
    package var warn: (String) -> Void = { _ in }
    /// Called repeatedly; returns true if SQLite should stop the current statement.
    package var shouldStop: (@Sendable () -> Bool)?
    /// Gets the progress, and may throw to stop packing.
    package var progress: (PackProgress) throws -> Void = { _ in }
    package init() {}
}

package struct PackProgress: Sendable {
    package var what: String
    package var done = 0
    /// The total; 0 if it is unknown.
    package var total = 0
}

package struct PackReport: Sendable {
    package let manifest: String
    package let bundle: String?
    package let bundleSize: Int
    package let contentSize: Int
    package let version: String
    package let sequence: Int
    /// Why `pack` has chosen this sequence; nil if the draft has one.
    package var reasonForSequence: String?
    package let patches: [Manifest.Patch]
    package let databases: [(name: String, size: Int, sha256: String, group: String?, taken: TakenFile?)]
    package let trials: Trials
    /// The changes from the older release; nil without one.
    package let changes: PackChanges?
}
