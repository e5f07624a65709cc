public import MoultBasics

/// The input of planning: values, and a read-only view of the store.
public struct PlanContext: Sendable {
    /// The size of the largest database whose rows a plan counts without `--deep`, in bytes.
    public static let largestCounted = 8 << 20

    /// The operation that is planned.
    public enum Purpose: String, Sendable, CaseIterable {
        /// A release is installed.
        case update
        /// A kept generation is restored.
        case rollback
        /// A database that cannot be used is set aside and replaced by a new one.
        case reset
    }

    /// The operation that is planned.
    public let purpose: Purpose
    /// The database to reset, if this is a reset.
    public let only: String?
    /// Why that database is reset.
    public let reason: String
    /// The release to install.
    public let release: Manifest
    /// The name of the release's generation.
    public let generation: String
    /// The installed release.
    public let installed: Manifest?
    /// The name of the installed generation.
    public let installedGeneration: String?
    /// The directory of in-place databases, which is that of the manifest.
    public let resources: String
    /// The operator's choices.
    public let policy: Policy
    /// A read-only view of the store.
    public let store: any StoreView
    /// The file whose content a reset uses instead of the shipped content.
    public package(set) var restoring: String?
    /// The table to restore from that file; nil to restore the whole file.
    public package(set) var restoringTable: RestoredTable?
    /// Whether the programs that have a database open are asked to release it before it changes.
    public package(set) var isReleased: @Sendable (_ database: String) -> Bool = { _ in false }
    /// Whether trusted release keys have signed the manifest itself, so that the publisher's proofs count.
    public package(set) var trustsProofs = false
    /// The members that are taken from a kept generation instead of the bundle or a patch.
    public package(set) var reused: Set<String> = []
    /// The effects that earlier steps have planned.
    public var planned: [Effect] = []
    /// Adds a note to the plan about how a step is confined.
    public package(set) var note: @Sendable (_ step: String, _ text: String) -> Void = { _, _ in }

    /// Creates a context for planning; tests of steps use this.
    public init(
        purpose: Purpose, only: String? = nil, because reason: String = "", release: Manifest, generation: String,
        installed: Manifest?, installedGeneration: String?, resources: String, policy: Policy, store: any StoreView
    ) {
        (self.purpose, self.only, self.reason) = (purpose, only, reason)
        (self.release, self.generation) = (release, generation)
        (self.installed, self.installedGeneration) = (installed, installedGeneration)
        (self.resources, self.policy, self.store) = (resources, policy, store)
    }
}

extension PlanContext {
    /// Returns the publisher's proof that replaces a check by this machine; nil if the machine checks the file itself. A proof
    /// counts only while an update installs the generation, and only for files that this machine writes and compares with the
    /// signed digest.
    public func carriedProof(of database: Database) -> Database.Proof? {
        guard trustsProofs, purpose == .update, generation != installedGeneration, database.place == .generation,
            demandedCheck(of: database) == nil, !reused.contains(database.member)
        else { return nil }
        return database.proved
    }

    /// Returns the check that the release or the operator requires on each machine; nil if neither requires one.
    public func demandedCheck(of database: Database) -> Database.Depth? {
        [database.verify, policy.verify].compactMap(\.self).max()
    }
}

/// A table whose rows are restored from a set in quarantine.
public struct RestoredTable: Sendable, Equatable {
    /// The table.
    public let table: String
    /// The set that the file belongs to.
    public let set: String
    /// The generations that shipped rows of the table.
    public let generations: [String]

    package init(table: String, set: String, generations: [String]) {
        (self.table, self.set, self.generations) = (table, set, generations)
    }
}

extension PlanContext {
    /// Returns the path of a writable database in effects: relative to the store, or absolute if caches are in a separate
    /// directory.
    public func path(of database: Database) -> String {
        guard database.kind.isDisposable, let root = policy.cacheRoot else { return database.path }
        return "\(root)/\(database.path)"
    }

    /// Returns whether the plan creates a writable database at a path.
    public func creates(_ path: String) -> Bool {
        planned.contains { if case .create(path, _) = $0.change { true } else { false } }
    }

    /// Returns the reason for which the plan takes the whole content at a path out of service; nil if it does not.
    public func displacement(at path: String) -> KeptReason? {
        for case .displace(path, _, let reason) in planned.map(\.change) { return reason }
        return nil
    }

    /// Returns whether the plan moves the file at a path to quarantine.
    public func isSetAside(_ path: String) -> Bool {
        planned.contains { if case .quarantine(path, _, _) = $0.change { true } else { false } }
    }
}

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
        (self.plan, self.staging, self.stagedGeneration) = (plan, staging, stagedGeneration)
        (self.progress, self.warn) = (progress, warn)
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
