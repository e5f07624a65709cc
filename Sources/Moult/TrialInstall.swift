internal import MoultBasics
internal import MoultFiles
package import StepKit

/// Installs a release in a temporary store in the same way as users' machines do. A release that stores would reject is thus
/// found before publication, by the same code.
///
/// Consumers are not called. Of the other steps that a release names, those of this command that only plan effects of the core run;
/// programs only check their parameters, and steps that are unknown here do nothing.
package struct TrialInstall {
    private let checkTime: CheckTime
    /// Whether proofs in manifests count without signatures. If so, the caller has just made the proofs of this release, and
    /// stores already have the older releases.
    private let hasProofs: Bool
    private let watcher: Watcher
    /// The steps of this command.
    private let steps: StepSet
    /// The programs of other steps, by their names.
    private let programs: [String: String]

    package init(
        checkTime: CheckTime = CheckTime(isTrial: true), hasProofs: Bool = false, steps: StepSet = .builtIn,
        programs: [String: String] = [:], shouldStop: @escaping @Sendable () -> Bool = { false }
    ) {
        (self.checkTime, self.hasProofs) = (checkTime, hasProofs)
        (self.steps, self.programs) = (steps, programs)
        watcher = Watcher(shouldStop: shouldStop)
    }

    /// Installs the release, given by its manifest, over another release or into an empty store. Returns nil, or the reason why
    /// this update cannot be tried here; throws any error that a store would throw. If the files of its bundle are in the directory
    /// `unpacked`, too, the bundle is only read once, while it is installed into the empty store.
    package func run(_ release: String, over previous: String? = nil, unpacked: String? = nil) throws -> String? {
        let manifest = try read(release)
        if let range = manifest.requires.moult, !range.contains(moultVersion) {
            return "it requires moult \(range), but this is \(moultVersion)"
        }
        // Another user may be able to exchange the directory of the release during the trial, and the store has many paths.
        return try Files.withScratchDirectory { directory in
            let bundle = try unpacked != nil && previous == nil ? reading(manifest, release) : nil
            defer { bundle?.wait() }
            let why = try install(release, manifest, over: previous, unpacked, in: "\(directory)/store")
            try bundle?.value()
            return why
        }
    }

    /// Reads and verifies the bundle of a release as stores do; nil if it has none.
    private func reading(_ manifest: Manifest, _ release: String) throws -> BackgroundWork<Void>? {
        guard let bundle = manifest.bundle else { return nil }
        let path = "\(Files.directory(of: release))/\(bundle.file)"
        return try BackgroundWork { [watcher] in
            try Unpacker(place: { $0 }, release: manifest, bundle: path, members: []) { _ in try watcher.stopIfAsked() }
                .unpack()
        }
    }

    private func install(
        _ release: String, _ manifest: Manifest, over previous: String?, _ unpacked: String?, in store: String
    ) throws -> String? {
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
        do { try update(store, release, manifest, unpacked) } catch { throw without(store, error) }
        return nil
    }

    private func read(_ path: String) throws -> Manifest {
        try Manifest(parsing: ReleaseFile(path).bytes, as: .sealed, source: path)
    }

    private func update(_ store: String, _ path: String, _ manifest: Manifest, _ unpacked: String? = nil) throws {
        let others = try Set(manifest.steps.map(\.step)).sorted().map { name -> any Step in
            if let own = harmless(name) { return own }
            guard let program = programs[name] else { return OtherStep(name: name) }
            var settings = StepSettings(name: name, executable: try Files.absolute(program))
            settings.sha256 = try StepExecutable(Files.absolute(program)).sha256
            return CheckedStep(step: ExternalStep(settings))
        }
        let orchestrator = try Orchestrator(root: store, steps: StepSet.builtIn.adding(others), watcher: watcher)
        var request = UpdateRequest(
            app: manifest.requires.app?.example,
            // An operator may consent to both, so a release that needs such consent is not invalid.
            consent: Consent(takeOver: Set(manifest.databases.map(\.name)), acceptsUnpreserved: true))
        (request.checkTime, request.hasProofs, request.unpacked) = (checkTime, hasProofs, unpacked)
        _ = try orchestrator.update(ReleaseFile(path), request)
    }

    /// Removes the temporary store's directory from the paths in an error, because that directory no longer exists when a user
    /// reads the message.
    private func without(_ store: String, _ error: any Error) -> MoultError {
        guard var error = error as? MoultError else { return MoultError(.system, what: "\(error)", cause: error) }
        error.what = error.what.replacing("\(store)/", with: "")
        error.why = error.why?.replacing("\(store)/", with: "")
        return error
    }

    /// Returns what a trial does with a step of a release.
    package func conduct(_ step: String) -> Conduct {
        if harmless(step) != nil { return .run }
        return programs[step] == nil ? .unknown : .checked
    }

    package enum Conduct: Sendable {
        case run
        /// Only its parameters are checked.
        case checked
        case unknown
    }

    /// Returns the step of this command with a name, unless it makes changes of its own, which are perhaps outside the trial.
    private func harmless(_ name: String) -> (any Step)? {
        let step = steps.listed.first { $0.phase == nil && $0.step.name == name }?.step
        return step is any CustomStep ? nil : step
    }

    /// A step whose program is available: it checks the parameters, and plans nothing.
    private struct CheckedStep: PlacedStep {
        var step: ExternalStep
        var name: String { step.name }
        let summary = "checks its parameters in a trial"

        func plan(_ context: PlanContext) throws -> [Effect] {
            try step.checkParameters(context)
            return []
        }

        func placed(by use: Manifest.StepUse) -> any Step {
            var placed = self
            placed.step.use = use
            return placed
        }
    }

    /// Takes the place of a third-party step, which is not available here.
    private struct OtherStep: Step {
        let name: String
        let summary = "does nothing in a trial"
        func plan(_ context: PlanContext) -> [Effect] { [] }
    }
}
