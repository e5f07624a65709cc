package import MoultArchive
internal import MoultFiles
internal import MoultLibc
package import StepKit

/// The publisher's choices for packing, in addition to the draft.
package struct PackOptions {
    /// Where manifest and bundle go; made if it does not exist.
    package var output = "releases"
    package var level = 12
    /// One per core; each needs some ten megabytes, so the number is limited.
    package var threads = min(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), 16)
    /// The kind of bundle: ours in independent frames, or one for those who need another.
    package var format = ArchiveKind.tar(.zstd)
    /// The name of manifest and bundle without ending, which then replace those of an earlier pack; otherwise product and
    /// version, of which each is packed once.
    package var name: String?
    /// Older releases, by their manifests, from which patches are made.
    package var deltaFrom: [String] = []
    /// Manifests of older releases over which the new one is installed for trial, in addition to those in the output. With
    /// the first of them the new one is compared, otherwise with the newest in the output.
    package var previous: [String] = []
    package var compare: (_ old: Subject, _ new: Subject) throws -> ReleaseDiff = { try ReleaseDiff(from: $0, to: $1) }
    /// How long the check of a database may take.
    package var checkTime = CheckTime(isTrial: true)
    /// Installs a release for trial; without it nothing is tried.
    package var tryInstall: Trials.Install?
    /// Packs although files differ from what is committed.
    package var allowDirty = false
    package var defines: [String: String] = [:]
    package var environment = Subprocess.ownEnvironment
    package var warn: (String) -> Void = { _ in }
    /// Asked again and again: whether SQLite should stop what it is at.
    package var shouldStop: (@Sendable () -> Bool)?
    /// Receives the progress, and may throw to stop it.
    package var progress: (PackProgress) throws -> Void = { _ in }
    package init() {}
}

/// How far packing is.
package struct PackProgress: Sendable {
    package let what: String
    package let done: Int
    /// 0 if it is unknown.
    package let total: Int
}

/// The packed release.
package struct PackReport: Sendable {
    package let manifest: String
    package let bundle: String?
    package let bundleSize: Int
    package let contentSize: Int
    package let version: String
    package let sequence: Int
    /// The release before, whose sequence was counted on from, or nothing; nil if the draft says the sequence.
    package var counted: String?
    /// The patches that the manifest lists, its own and those of older releases.
    package let patches: [Manifest.Patch]
    package let databases: [(name: String, size: Int, sha256: String)]
    package let trials: Trials
    /// Nil without an older release.
    package let changes: PackChanges?
}
