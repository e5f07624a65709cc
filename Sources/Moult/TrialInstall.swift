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
    /// The directory for the store; it must not exist.
    private let scratch: String
    private let checkTime: CheckTime
    /// Whether proofs in manifests count without signatures. If so, the caller has just made the proofs of this release, and
    /// stores already have the older releases.
    private let hasProofs: Bool
    private let watcher: Watcher

    package init(
        in scratch: String, checkTime: CheckTime = CheckTime(isTrial: true), hasProofs: Bool = false,
        shouldStop: @escaping @Sendable () -> Bool = { false }
    ) {
        (self.scratch, self.checkTime, self.hasProofs) = (scratch, checkTime, hasProofs)
        watcher = Watcher(shouldStop: shouldStop)
    }

    /// Installs the release, given by its manifest, over another release or into an empty store. Returns nil, or the reason why
    /// this update cannot be tried here; throws any error that a store would throw.
    package func run(_ release: String, over previous: String? = nil) throws -> String? {
        let manifest = try read(release)
        if let range = manifest.requires.moult, !range.contains(moultVersion) {
            return "it requires moult \(range), but this is \(moultVersion)"
        }
        let result = Result { try install(release, manifest, over: previous) }
        try Files.removeTree(scratch)
        return try result.get()
    }

    private func install(_ release: String, _ manifest: Manifest, over previous: String?) throws -> String? {
        try Orchestrator.create(at: scratch, Settings(product: manifest.product))
        if let previous {
            let older = try read(previous)
            if let range = manifest.requires.from, !range.contains(older.version) {
                return "it requires an installed version \(range)"
            }
            do { try update(previous, older) } catch {
                try watcher.stopIfAsked()
                return "that release cannot be installed here: \(withoutScratchPaths(error).what)"
            }
        }
        do { try update(release, manifest) } catch { throw withoutScratchPaths(error) }
        return nil
    }

    private func read(_ path: String) throws -> Manifest {
        try Manifest(parsing: Planner.manifestBytes(path), as: .sealed, source: path)
    }

    private func update(_ path: String, _ manifest: Manifest) throws {
        let others = Set(manifest.steps.map(\.step)).map { OtherStep(name: $0) }
        let orchestrator = try Orchestrator(root: scratch, steps: StepSet.builtIn.adding(others), watcher: watcher)
        var request = UpdateRequest(
            manifest: path, app: manifest.requires.app?.example,
            // An operator may consent to both, so a release that needs such consent is not invalid.
            consent: Consent(takeOver: Set(manifest.databases.map(\.name)), acceptsUnpreserved: true))
        (request.checkTime, request.hasProofs) = (checkTime, hasProofs)
        _ = try orchestrator.update(request)
    }

    /// Removes the temporary store's directory from the paths in an error, because that directory no longer exists when a user
    /// reads the message.
    private func withoutScratchPaths(_ error: any Error) -> MoultError {
        guard var error = error as? MoultError else { return MoultError(.system, what: "\(error)", cause: error) }
        error.what = error.what.replacing("\(scratch)/", with: "")
        error.why = error.why?.replacing("\(scratch)/", with: "")
        return error
    }

    /// Takes the place of a third-party step, which is not available here.
    private struct OtherStep: Step {
        let name: String
        let summary = "does nothing in a trial"
        func plan(_ context: PlanContext) -> [Effect] { [] }
    }
}
