public import MoultBasics
internal import MoultEngine
public import StepKit

/// The result of an update.
///
///     let update = try await store.update(to: manifest)
///     for sentence in update.settled { print(sentence) }
///     print(update.isInstalled ? "installed \(update.generation ?? "")" : "nothing new")
public struct Update: Sendable {
    /// Whether something was installed; false if the release was there already.
    public let isInstalled: Bool
    /// The generation that is installed now.
    public let generation: String?
    /// The work that an interrupted command had left, finished or undone first, in words.
    public let settled: [String]

    init(_ result: Orchestrator.Result) {
        isInstalled = result.plan != nil
        generation = result.generation
        settled = result.settled.map(\.text)
    }
}

/// A planned update.
///
///     let plan = try store.plan(manifest)
///     for effect in plan.effects { print(effect) }
public struct UpdatePlan: Sendable {
    /// Every effect, in the order in which it would be done.
    public let effects: [Effect]
    /// False if nothing would change.
    public let changesStore: Bool
    /// The plan as the command `moult plan --json` prints it.
    public let json: JSON

    init(_ plan: Plan) {
        effects = plan.effects
        changesStore = plan.changesStore
        json = plan.json
    }
}

/// How far an update is.
///
///     try await store.update(to: manifest) { progress in
///         if case .working(let what, let done, let total) = progress, total > 0 {
///             print("\(what): \(100 * done / total) %")
///         }
///     }
public enum UpdateProgress: Sendable {
    /// A long piece of work, in bytes; `total` is 0 where it is not known.
    case working(String, done: Int, total: Int)
    /// Everything is staged and verified; from here on it goes forward only.
    case decided
    /// An effect of the plan was done.
    case done(Effect)
    /// A fact that the operator should know, although the update continues.
    case warning(String)

    init?(_ event: Event) {
        switch event {
        case .progress(let progress): self = .working(progress.what, done: progress.done, total: progress.total)
        case .decided: self = .decided
        case .done(.apply, let effect): self = .done(effect)
        case .warning(let text): self = .warning(text)
        case .done, .phase, .settled, .consumer: return nil
        }
    }
}
