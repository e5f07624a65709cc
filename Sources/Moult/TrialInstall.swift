internal import MoultBasics
internal import MoultEngine
internal import MoultFiles
internal import MoultStore
internal import StepKit

/// Installs a release as its users' machines will, in a store that is made for it and removed afterwards. What no store
/// could install is found before it is published, by the very code that would refuse it later.
///
/// No consumer is told, and steps of other packages do nothing: they belong to the machines that have them.
package struct TrialInstall {
    /// The directory of the store; it must not be there.
    private let scratch: String
    private let watcher: Watcher

    package init(in scratch: String, shouldStop: @escaping @Sendable () -> Bool = { false }) {
        (self.scratch, watcher) = (scratch, Watcher(shouldStop: shouldStop))
    }

    /// Installs the release by its manifest: over the release before, or into an empty store. Gives the reason if that way
    /// is none that a store could go; throws what a store would.
    package func run(_ release: String, over previous: String? = nil) throws -> String? {
        let manifest = try read(release)
        if let range = manifest.requires.moult, !range.contains(moultVersion) {
            return "it requires moult \(range), and this is \(moultVersion)"
        }
        let result = Result { try install(release, manifest, over: previous) }
        try Files.removeTree(scratch)
        return try result.get()
    }

    private func install(_ release: String, _ manifest: Manifest, over previous: String?) throws -> String? {
        var settings = Settings(product: manifest.product)
        // What it gave up would stay readable for a minute.
        settings.minimumAge = 0
        try Orchestrator.create(at: scratch, settings)
        if let previous {
            let older = try read(previous)
            if let range = manifest.requires.from, !range.contains(older.version) {
                return "it requires an installed version \(range)"
            }
            do { try update(previous, older) } catch {
                try watcher.stopIfAsked()
                return "that release cannot be installed here: \(told(error).what)"
            }
        }
        do { try update(release, manifest) } catch { throw told(error) }
        return nil
    }

    private func read(_ path: String) throws -> Manifest {
        try Manifest(parsing: Planner.manifestBytes(path), as: .sealed, source: path)
    }

    private func update(_ path: String, _ manifest: Manifest) throws {
        let others = Set(manifest.steps.map(\.step)).map { OtherStep(name: $0) }
        let orchestrator = try Orchestrator(root: scratch, steps: StepSet.builtIn.adding(others), watcher: watcher)
        _ = try orchestrator.update(
            UpdateRequest(
                manifest: path, app: manifest.requires.app?.example,
                // What only an operator may allow is no reason to refuse a release.
                consent: Consent(takeOver: Set(manifest.databases.map(\.name)), acceptsUnpreserved: true)))
    }

    /// Paths of the trial's store say nothing to people: the names in it do.
    private func told(_ error: any Error) -> MoultError {
        guard var error = error as? MoultError else { return MoultError(.system, what: "\(error)", cause: error) }
        error.what = error.what.replacing("\(scratch)/", with: "")
        error.why = error.why?.replacing("\(scratch)/", with: "")
        return error
    }

    /// A step of another package, which is not here.
    private struct OtherStep: Step {
        let name: String
        let summary = "does nothing in a trial"
        func plan(_ context: PlanContext) -> [Effect] { [] }
    }
}
