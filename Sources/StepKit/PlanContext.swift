/// The facts for planning: values, and a view of the store that cannot write.
public struct PlanContext: Sendable {
    /// The reason for the update.
    public enum Purpose: String, Sendable, CaseIterable {
        /// A release is installed.
        case update
        /// A kept generation comes back.
        case rollback
        /// One database that cannot be used is set aside, and replaced by an empty one.
        case reset
    }

    /// The reason for the update.
    public let purpose: Purpose
    /// The one database that a reset is about, and why it is reset.
    public let only: String?
    /// Why that database is reset.
    public let reason: String
    /// The release that should be installed.
    public let release: Manifest
    /// The name that its generation has or will have.
    public let generation: String
    /// The release that is installed now.
    public let installed: Manifest?
    /// The name of its generation.
    public let installedGeneration: String?
    /// The directory in which databases in place lie: the manifest's own.
    public let resources: String
    /// The operator's choices.
    public let policy: Policy
    /// The store, to look at.
    public let store: any StoreView
    /// The file whose content a reset puts in place of the shipped one.
    public package(set) var restoring: String?
    /// The table whose rows alone come back from that file.
    public package(set) var restoringTable: RestoredTable?
    /// Whether the programs that have a database open are asked to release it before it changes.
    public package(set) var isReleased: @Sendable (_ database: String) -> Bool = { _ in false }
    /// Whether release keys that the store trusts signed the manifest itself: then its publisher's proofs count.
    public package(set) var trustsProofs = false
    /// The members that come from a kept generation, and not from the bundle or a patch.
    public package(set) var reused: Set<String> = []
    /// The effects that were planned before this step, by it and by others.
    public var planned: [Effect] = []
    /// Tells what the plan should say of how a step was kept from changing anything.
    public package(set) var note: @Sendable (_ step: String, _ text: String) -> Void = { _, _ in }

    /// A context for planning; tests of steps make one themselves.
    public init(
        purpose: Purpose, only: String? = nil, because reason: String = "", release: Manifest, generation: String,
        installed: Manifest?,
        installedGeneration: String?, resources: String, policy: Policy, store: any StoreView
    ) {
        self.purpose = purpose
        (self.only, self.reason) = (only, reason)
        self.release = release
        self.generation = generation
        self.installed = installed
        self.installedGeneration = installedGeneration
        self.resources = resources
        self.policy = policy
        self.store = store
    }
}

extension PlanContext {
    /// The publisher's proof that stands for a check by this machine; nil if the machine checks the file itself.
    ///
    /// It counts only for the first installation of files that are written here and have the signed digest.
    public func carriedProof(of database: Database) -> Database.Proof? {
        guard trustsProofs, purpose == .update, generation != installedGeneration, database.place == .generation,
            demandedCheck(of: database) == nil, !reused.contains(database.member)
        else { return nil }
        return database.proved
    }

    /// How deeply the release or the operator want a file to be checked on each machine; nil if neither says.
    public func demandedCheck(of database: Database) -> Database.Depth? {
        [database.verify, policy.verify].compactMap(\.self).max()
    }
}

/// A table whose rows come back from a set in quarantine.
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
    /// The path of a living database, as effects have it: relative to the store, or absolute where caches live apart.
    public func path(of database: Database) -> String {
        guard database.kind.isDisposable, let root = policy.cacheRoot else { return database.path }
        return "\(root)/\(database.path)"
    }

    /// Whether a living file is planned to be made at a path.
    public func creates(_ path: String) -> Bool {
        planned.contains { if case .create(path, _) = $0.change { true } else { false } }
    }

    /// Whether the file at a path is planned to move to another one.
    public func moves(_ from: String) -> Bool {
        planned.contains { if case .move(from, _) = $0.change { true } else { false } }
    }

    /// Whether the file at a path is planned to become a generation of its own.
    public func adopts(_ path: String) -> Bool {
        planned.contains { if case .adopt(path, _) = $0.change { true } else { false } }
    }

    /// Whether the file at a path is planned to be out of the way.
    public func isSetAside(_ path: String) -> Bool {
        planned.contains { if case .quarantine(path, _, _) = $0.change { true } else { false } }
    }

    /// Whether the cache at a path is planned to stay until no process has it open.
    public func isPostponed(_ path: String) -> Bool {
        planned.contains { if case .postpone(path, _) = $0.change { true } else { false } }
    }
}
