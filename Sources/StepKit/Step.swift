/// A pluggable unit of work in one of the five phases of an update: check, delete, copy, attach, verify.
///
/// An update first gets the effects of each step (`plan`), then has each step do the work that readers do not see (`prepare`).
/// When every step is ready, the core applies the effects, and lets the step check each (`check`). A failure before that point
/// changes nothing; after it, the core undoes the effects in reverse order. After a crash the effects are applied again.
///
/// The core applies and undoes only the changes in the closed list (`Change`). A step with `custom` changes is a
/// ``CustomStep``.
public protocol Step: Sendable {
    /// The name of the step in manifests and plans: `copy`, `acme.reindex`.
    var name: String { get }

    /// The purpose of the step, in one line.
    var summary: String { get }

    /// Returns the effects of the step, or throws if the update must not happen.
    ///
    /// The context is read-only. If nothing has changed, the step must return the same effects.
    func plan(_ context: PlanContext) throws -> [Effect]

    /// Checks the staged files right after they were unpacked and before they are opened: until then they are
    /// untrusted.
    func examine(_ effects: [Effect], _ context: PrepareContext) throws

    /// Does all work that takes long or can fail, in staging only, where readers do not see it.
    func prepare(_ effects: [Effect], _ context: PrepareContext) throws

    /// Checks an effect of this step right after it was applied, with the paths that apps use. If this throws, the update is
    /// undone. It must be fast.
    func check(_ effect: Effect, _ context: ApplyContext) throws

    /// Cleans up when an update with effects of this step is over; a failure here has no effect on the update.
    func clean(_ ending: Ending, _ context: ApplyContext) throws
}

/// A step that applies changes of its own, which moult journals but does not know (`Change.custom`).
public protocol CustomStep: Step {
    /// Applies a change. This must be fast and idempotent.
    func apply(_ effect: Effect, _ context: ApplyContext) throws

    /// Undoes a change that was completely or partly applied. This must be idempotent, too.
    func undo(_ effect: Effect, _ context: ApplyContext) throws
}

/// The result of an update.
public enum Ending: String, Sendable, CaseIterable {
    /// The release is installed.
    case done
    /// The update failed after the decision to install and was undone.
    case undone
    /// The update failed before it changed anything.
    case failed
}

extension Step {
    public func examine(_ effects: [Effect], _ context: PrepareContext) throws {}
    public func prepare(_ effects: [Effect], _ context: PrepareContext) throws {}
    public func check(_ effect: Effect, _ context: ApplyContext) throws {}
    public func clean(_ ending: Ending, _ context: ApplyContext) throws {}

    /// Creates an effect of this step.
    public func effect(_ phase: Phase, _ database: String? = nil, _ change: Change) -> Effect {
        Effect(step: name, phase: phase, database: database, change)
    }
}

/// The five phases of an update, in order.
public enum Phase: String, Sendable, CaseIterable, Comparable {
    /// Checks whether the update may happen.
    case check
    /// Takes old files out of service; nothing is destroyed.
    case delete
    /// Puts new files in place.
    case copy
    /// Checks that all databases open together.
    case attach
    /// Checks that the installed databases are the verified ones.
    case verify

    public static func < (a: Phase, b: Phase) -> Bool {
        (allCases.firstIndex(of: a) ?? 0) < (allCases.firstIndex(of: b) ?? 0)
    }
}
