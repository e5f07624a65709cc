public import MoultBasics
public import StepKit

/// The result of an update.
///
///     let update = try await store.update(to: manifest)
///     for sentence in update.settled { print(sentence) }
///     print(update.isInstalled ? "installed \(update.generation ?? "")" : "nothing new")
public struct Update: Sendable {
    /// Whether anything was installed; false if the release was already installed.
    public let isInstalled: Bool
    /// The generation installed now.
    public let generation: String?
    /// Descriptions of interrupted work that was finished or undone first.
    public let settled: [String]

    init(_ result: Orchestrator.Result) {
        isInstalled = result.plan != nil
        generation = result.generation
        settled = result.recovered.map(\.text)
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
