internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
package import StepKit

/// Makes trial installations of a release before it is public: into an empty store, and over the releases that stores
/// may have.
package struct Trials: Sendable {
    /// One trial, with the previously installed release; nil for an empty store.
    package struct Trial: Sendable {
        package let previous: Version?
        /// Why this update could not be tried; nil if the release was installed.
        package let skipped: String?
    }
    /// Installs a release, given by its manifest, over another release or into an empty store. The files of its bundle may be
    /// in a directory, too. Returns nil, or the reason why this update cannot be tried; throws the errors that a store would throw.
    package typealias Install = (_ manifest: String, _ previous: String?, _ unpacked: String?) throws -> String?

    package private(set) var all: [Trial] = []
    /// The steps of the release that the trials did not run, and why.
    package internal(set) var stepsNotRun: [(step: String, why: String)] = []
    package private(set) var milliseconds = 0

    /// The maximum number of releases in a directory over which the release is tried; the newest are used.
    private static let newest = 3

    /// Makes the trials, and throws the errors that a store would throw. `files` are manifests of older releases; `directory`
    /// may have more of them, of which only those in `feed` count, if it is given: anyone who can write to the directory can add
    /// others. Without `tryInstall`, nothing is tried.
    init(
        of manifest: String, _ release: Manifest, over files: [String], and directory: String,
        listedIn feed: [Feed.Release]? = nil, unpackedIn unpacked: String? = nil, by tryInstall: Install?
    ) throws {
        guard let tryInstall else { return }
        let begun = ContinuousClock.now
        let named = try files.map { path in
            guard let older = try EarlierRelease(path), older.precedes(release) else {
                throw MoultError(
                    .packing, what: "\(path) cannot be the previous release",
                    why: "it is not an older release of \(release.product)",
                    now: "Specify the manifest of an older release.")
            }
            return (path, older.manifest.version)
        }
        let there = try Self.newest(
            in: directory, before: release,
            where: { older in
                let digest = try older.digest
                return try feed?.contains { $0.manifest.sha256 == digest } ?? true && older.hasBundle
            }
        ).filter { one in !named.contains { $0.1 == one.1 } }
        for (path, version) in [(nil, nil)] + (named + there).map({ (Optional($0.0), Optional($0.1)) }) {
            do { all.append(Trial(previous: version, skipped: try tryInstall(manifest, path, unpacked))) } catch {
                throw Self.refusal(error, release.version, over: version)
            }
        }
        milliseconds = Int((ContinuousClock.now - begun) / .milliseconds(1))
    }

    /// Returns the latest releases in a directory that are older than this one, newest first.
    static func newest(
        in directory: String, before release: Manifest, where isUsable: (EarlierRelease) throws -> Bool = { _ in true }
    ) throws -> [(String, Version)] {
        try EarlierRelease.all(in: directory).filter { try $0.precedes(release) && isUsable($0) }.prefix(newest)
            .map { ($0.path, $0.manifest.version) }
    }

    private static func refusal(_ error: any Error, _ version: Version, over previous: Version?) -> any Error {
        // These errors are about this machine and not about the release.
        guard var error = error as? MoultError, error.outcome != .busy else { return error }
        if error.code == .space || error.sqlite?.resultCode.primary == .full
            || error.chain.contains(where: { $0 is Errno })
        {
            // The error's outcome is about the trial store, which does not matter here.
            error.outcome = .failed
            return error
        }
        let place = previous.map { "over \($0)" } ?? "into an empty store"
        error.what = "release \(version) cannot be installed \(place): \(error.what)"
        error.now = "Nothing was written. Correct the draft or the database, then try again."
        if let previous, previous.ranksWith(version) {
            error.now = "Nothing was written. \(version.adviceOnBuildMetadata)"
        } else if let previous {
            let limit = version.precedes(previous) ? "<" : ">"
            error.now =
                "Nothing was written. Correct the draft or the database. If stores must not update from \(previous) "
                + "directly, exclude that version in the draft: \"requires\": { \"from\": \"\(limit)\(previous)\" }"
        }
        error.outcome = .refused
        return error
    }
}
