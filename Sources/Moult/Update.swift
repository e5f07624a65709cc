public import MoultBasics
public import StepKit

/// The result of an update.
///
///     let update = try await store.update(to: manifest)
///     for earlier in update.recovered { print(earlier) }
///     print(update.isInstalled ? "installed \(update.generation ?? "")" : "nothing new")
public struct Update: Sendable {
    /// Whether anything was installed; false if the release was already installed.
    public let isInstalled: Bool
    /// The generation installed now.
    public let generation: String?
    /// Updates that a crash had interrupted, and that were finished or undone first.
    public let recovered: [InterruptedUpdate]

    init(_ result: Orchestrator.Result) {
        isInstalled = result.plan != nil
        generation = result.generation
        recovered = result.recovered.map { InterruptedUpdate($0) }
    }
}

/// An update that a crash had interrupted.
///
///     for update in try await store.recover() { print(update.ending, update) }
public struct InterruptedUpdate: Sendable, CustomStringConvertible {
    /// How the update ended.
    public enum Ending: Sendable {
        /// Nothing had been changed; the staged files were removed.
        case cleaned
        /// The update was finished.
        case finished
        /// The update was undone: the release from before it is installed.
        case undone
    }

    /// How the update ended.
    public let ending: Ending
    /// The release before the update; nil if there was none, or if it is unknown.
    public let from: Version?
    /// The release that the update was to install; nil if it is unknown.
    public let to: Version?
    /// The update and its end in a sentence.
    public let description: String

    init(_ result: CrashRecovery.Result) {
        ending =
            switch result.ending {
            case .finished: .finished
            case .undone: .undone
            default: .cleaned
            }
        description = result.text
        (from, to) = (result.from?.version, result.to?.version)
    }
}

/// A planned update.
///
///     let plan = try store.plan(manifest)
///     for effect in plan.effects { print(effect) }
public struct UpdatePlan: Sendable {
    /// Every effect, in the order of application.
    public let effects: [Effect]
    /// Whether the plan would change the store.
    public let changesStore: Bool
    /// The plan as printed by `moult plan --json`.
    public let json: JSON

    init(_ plan: Plan) {
        effects = plan.effects
        changesStore = plan.changesStore
        json = plan.json
    }
}

/// The progress of an update.
///
///     try await store.update(to: manifest) { progress in
///         if case .working(let what, let done, let total) = progress, total > 0 {
///             print("\(what): \(100 * done / total) %")
///         }
///     }
public enum UpdateProgress: Sendable {
    /// The progress of a long task, in bytes; `total` is 0 if unknown.
    case working(String, done: Int, total: Int)
    /// All files are staged and verified; the update can no longer be cancelled.
    case decided
    /// An effect of the plan was applied.
    case done(Effect)
    /// A problem that the operator should know about; the update continues.
    case warning(String)

    init?(_ event: Event) {
        switch event {
        case .progress(let progress): self = .working(progress.what, done: progress.done, total: progress.total)
        case .decided: self = .decided
        case .done(.apply, let effect): self = .done(effect)
        case .warning(let text): self = .warning("\(text.forApps)")
        case .done, .phase, .recovered, .consumer: return nil
        }
    }
}
