/// A pluggable unit of work in one of the five phases of an update: check, delete, copy, attach, verify.
///
/// An update first asks each step for its effects (`plan`), then lets it do the work that readers do not see (`prepare`), and
/// applies the effects only when every step is ready (`apply`). A failure before that point changes nothing; a later one is
/// undone by `undo`, in reverse order. After a crash the effects are applied again, so applying one twice must have the same
/// result as applying it once.
///
/// A step whose changes are all in the closed list (`Change`) writes `plan` and perhaps `prepare`: the core applies, journals
/// and undoes them. For a `custom` change the step applies it in `apply` and reverts it in `undo`.
public protocol Step: Sendable {
    /// The name by which manifests and plans call it: `copy`, `acme.reindex`.
    var name: String { get }

    /// Its purpose, in one line.
    var summary: String { get }

    /// Says what it will do, or throws if the update must not happen.
    ///
    /// The context can only be read. Must give the same effects when nothing has changed in between.
    func plan(_ context: PlanContext) throws -> [Effect]

    /// Looks at what came in, right after it was unpacked and before anybody opens it: until then it is hostile.
    func examine(_ effects: [Effect], _ context: PrepareContext) throws

    /// Does all that can be done and verified without anybody seeing it, however long it takes; works in staging only.
    func prepare(_ effects: [Effect], _ context: PrepareContext) throws

    /// Does one of the planned effects. Short; done twice it must be the same as once.
    func apply(_ effect: Effect, _ context: ApplyContext) throws

    /// Takes back one effect that was done, or was begun.
    func undo(_ effect: Effect, _ context: ApplyContext) throws

    /// Tidies up when an update with effects of this step is over; what goes wrong here changes nothing any more.
    func clean(_ ending: Ending, _ context: ApplyContext) throws
}

/// How an update came out.
public enum Ending: String, Sendable, CaseIterable {
    /// It is installed.
    case done
    /// It failed after the decision, and all of it was taken back.
    case undone
    /// It ended before anything was changed.
    case failed
}

extension Step {
    public func examine(_ effects: [Effect], _ context: PrepareContext) throws {}
    public func prepare(_ effects: [Effect], _ context: PrepareContext) throws {}
    public func apply(_ effect: Effect, _ context: ApplyContext) throws { try context.changes.perform(effect) }
    public func undo(_ effect: Effect, _ context: ApplyContext) throws { try context.changes.revert(effect) }
    public func clean(_ ending: Ending, _ context: ApplyContext) throws {}

    /// An effect of this step.
    public func effect(_ phase: Phase, _ database: String? = nil, _ change: Change) -> Effect {
        Effect(step: name, phase: phase, database: database, change)
    }
}

/// The five phases of an update, in the order in which they always come.
public enum Phase: String, Sendable, CaseIterable, Comparable {
    /// May it be done at all?
    case check
    /// Old files are taken out of service; nothing is destroyed.
    case delete
    /// New files are put in place.
    case copy
    /// Do all of them open together?
    case attach
    /// Is what is in service what was verified?
    case verify

    public static func < (a: Phase, b: Phase) -> Bool {
        (allCases.firstIndex(of: a) ?? 0) < (allCases.firstIndex(of: b) ?? 0)
    }
}
