public import MoultBasics

/// The resources of a step during `prepare`: the staged files, and a view of the store.
public struct PrepareContext: Sendable {
    /// The facts from planning.
    public let plan: PlanContext
    /// The transaction's own directory, on the store's file system; gone when the update has ended.
    public let staging: String
    /// The staged generation's directory, in which sealed files are made ready.
    public let stagedGeneration: String
    /// Reports the progress of a long piece of work, and throws when it has to stop.
    public let progress: @Sendable (Progress) throws -> Void
    /// Tells what the operator should know although it does not stop the update.
    public let warn: @Sendable (String) -> Void

    /// How far a long piece of work is.
    public struct Progress: Sendable {
        /// The work, in a few words.
        public let what: String
        /// The bytes that are done.
        public let done: Int
        /// The total number of bytes; 0 if it is unknown.
        public let total: Int
        /// Work in bytes.
        public init(_ what: String, done: Int, total: Int) { (self.what, self.done, self.total) = (what, done, total) }
    }

    /// A context for preparing; tests of steps make one themselves.
    public init(
        plan: PlanContext, staging: String, stagedGeneration: String,
        progress: @escaping @Sendable (Progress) throws -> Void, warn: @escaping @Sendable (String) -> Void
    ) {
        self.plan = plan
        self.staging = staging
        self.stagedGeneration = stagedGeneration
        self.progress = progress
        self.warn = warn
    }

    /// The path of an unpacked member of the bundle; such a file is moved, not copied.
    public func unpacked(_ member: String) -> String { "\(staging)/unpacked/\(member)" }

    /// Where a file waits that will become a living database: always on the file system where it will live.
    public func waiting(_ path: String) -> String { Staging.waiting(path, in: staging) }
}

/// The resources of a step while it applies its effects.
public struct ApplyContext: Sendable {
    /// The facts from planning.
    public let plan: PlanContext
    /// The transaction's own directory.
    public let staging: String
    /// Does the changes of the closed list, journaled and undoable; refuses what is not in the plan.
    public let changes: any Changes
    /// Keeps in the journal what is about to be done for an effect, before it is done.
    public let intents: any Intents

    /// A context for applying; tests of steps make one themselves.
    public init(plan: PlanContext, staging: String, changes: any Changes, intents: any Intents = NoIntents()) {
        (self.plan, self.staging, self.changes, self.intents) = (plan, staging, changes, intents)
    }
}

/// The part of the journal in which a step notes what it is about to do, so that an undo after a crash knows of it.
public protocol Intents: Sendable {
    /// Notes it; on disk when this returns.
    func add(_ intent: JSON, for effect: Effect) throws
    /// The notes for an effect, also those of a process that has crashed since; in order.
    func all(for effect: Effect) throws -> [JSON]
}

/// No journal: for steps that are tried out.
public struct NoIntents: Intents {
    /// Keeps nothing.
    public init() {}
    /// Keeps nothing.
    public func add(_ intent: JSON, for effect: Effect) {}
    /// Nothing was kept.
    public func all(for effect: Effect) -> [JSON] { [] }
}

/// The hands of the core.
public protocol Changes: Sendable {
    /// Does what the effect says.
    func perform(_ effect: Effect) throws
    /// Takes back what the effect did, or had begun.
    func revert(_ effect: Effect) throws
}
