internal import MoultBasics
internal import MoultEngine
internal import MoultFiles
internal import MoultStore
package import StepKit

/// Installs a release in a temporary store in the same way as users' machines do. A release that stores would reject is thus
/// found before publication, by the same code.
///
/// Consumers are not called, and third-party steps do nothing, because they exist only on the machines that use them.
package struct TrialInstall {
    private let checkTime: CheckTime
    /// Whether proofs in manifests count without signatures. If so, the caller has just made the proofs of this release, and
    /// stores already have the older releases.
    private let hasProofs: Bool
    private let watcher: Watcher

    package init(
        checkTime: CheckTime = CheckTime(isTrial: true), hasProofs: Bool = false,
        shouldStop: @escaping @Sendable () -> Bool = { false }
    ) {
        (self.checkTime, self.hasProofs) = (checkTime, hasProofs)
        watcher = Watcher(shouldStop: shouldStop)
    }

    /// Installs the release, given by its manifest, over another release or into an empty store. Returns nil, or the reason why
    /// this update cannot be tried here; throws any error that a store would throw.
    package func run(_ release: String, over previous: String? = nil) throws -> String? {
        let manifest = try read(release)
        if let range = manifest.requires.moult, !range.contains(moultVersion) {
            return "it requires moult \(range), but this is \(moultVersion)"
        }
        // Another user may be able to exchange the directory of the release during the trial, and the store has many paths.
        return try Files.withScratchDirectory { directory in
            try install(release, manifest, over: previous, in: "\(directory)/store")
        }
    }

    private func install(_ release: String, _ manifest: Manifest, over previous: String?, in store: String) throws
        -> String?
    {
        try Orchestrator.create(at: store, Settings(product: manifest.product))
        if let previous {
            let older = try read(previous)
            if let range = manifest.requires.from, !range.contains(older.version) {
                return "it requires an installed version \(range)"
            }
            do { try update(store, previous, older) } catch {
                try watcher.stopIfAsked()
                return "that release cannot be installed here: \(without(store, error).what)"
            }
        }
        do { try update(store, release, manifest) } catch { throw without(store, error) }
        return nil
    }

    private func read(_ path: String) throws -> Manifest {
        try Manifest(parsing: Planner.manifestBytes(path), as: .sealed, source: path)
    }

    private func update(_ store: String, _ path: String, _ manifest: Manifest) throws {
        let others = Set(manifest.steps.map(\.step)).map { OtherStep(name: $0) }
        let orchestrator = try Orchestrator(root: store, steps: StepSet.builtIn.adding(others), watcher: watcher)
        var request = UpdateRequest(
            manifest: path, app: manifest.requires.app?.example,
            // An operator may consent to both, so a release that needs such consent is not invalid.
            consent: Consent(takeOver: Set(manifest.databases.map(\.name)), acceptsUnpreserved: true))
        (request.checkTime, request.hasProofs) = (checkTime, hasProofs)
        _ = try orchestrator.update(request)
    }

    /// Removes the temporary store's directory from the paths in an error, because that directory no longer exists when a user
    /// reads the message.
    private func without(_ store: String, _ error: any Error) -> MoultError {
        guard var error = error as? MoultError else { return MoultError(.system, what: "\(error)", cause: error) }
        error.what = error.what.replacing("\(store)/", with: "")
        error.why = error.why?.replacing("\(store)/", with: "")
        return error
    }

    /// Takes the place of a third-party step, which is not available here.
    private struct OtherStep: Step {
        let name: String
        let summary = "does nothing in a trial"
        func plan(_ context: PlanContext) -> [Effect] { [] }
    }
}
