public import MoultBasics

/// The resources of a step during `prepare`: the staged files, and a view of the store.
public struct PrepareContext: Sendable {
    /// The input of planning.
    public let plan: PlanContext
    /// The transaction's directory, on the store's file system; removed when the update ends.
    public let staging: String
    /// The directory of the staged generation, in which sealed files are prepared.
    public let stagedGeneration: String
    /// Reports the progress of a long operation, and throws if it has to stop.
    public let progress: @Sendable (Progress) throws -> Void
    /// Shows the operator a warning.
    public let warn: @Sendable (String) -> Void

    /// The progress of a long operation.
    public struct Progress: Sendable {
        /// The operation, in a few words.
        public let what: String
        /// The number of bytes done.
        public let done: Int
        /// The total number of bytes; 0 if it is unknown.
        public let total: Int
        /// Creates a progress report in bytes.
        public init(_ what: String, done: Int, total: Int) { (self.what, self.done, self.total) = (what, done, total) }
    }

    /// The ID of the transaction.
    public var transaction: String { staging.pathParts().last.map { String($0) } ?? staging }

    /// Creates a context for preparing; tests of steps use this.
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

    /// Returns the path of an unpacked member of the bundle; such a file is moved, not copied.
    public func unpacked(_ member: String) -> String { Staging.unpacked(member, in: staging) }

    /// Returns the path of the staged file of a writable database, which is always on the file system of its destination.
    public func waiting(_ path: String) -> String { Staging.waiting(path, in: staging) }
}

/// The resources of a step while it applies its effects.
public struct ApplyContext: Sendable {
    /// The input of planning.
    public let plan: PlanContext
    /// The transaction's directory.
    public let staging: String
    /// Records in the journal what the step is about to do for an effect.
    public let intents: any Intents

    /// Creates a context for applying; tests of steps use this.
    public init(plan: PlanContext, staging: String, intents: any Intents = NoIntents()) {
        (self.plan, self.staging, self.intents) = (plan, staging, intents)
    }
}

/// The part of the journal in which a step records what it is about to do, so that an undo after a crash knows about it.
public protocol Intents: Sendable {
    /// Records an intent; it is on disk when this function returns.
    func add(_ intent: JSON, for effect: Effect) throws
    /// Returns the intents of an effect in order, including those of a process that has crashed.
    func all(for effect: Effect) throws -> [JSON]
}

/// Intents without a journal, for tests of steps.
public struct NoIntents: Intents {
    /// Creates intents without a journal.
    public init() {}
    /// Records nothing.
    public func add(_ intent: JSON, for effect: Effect) {}
    /// Returns an empty list.
    public func all(for effect: Effect) -> [JSON] { [] }
}
