public import MoultBasics

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

    /// Does all that can be done and proven without anybody seeing it, however long it takes; works in staging only.
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
    /// The release that shall be installed.
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
    /// Tells what the plan shall say of how a step was kept from changing anything.
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

/// The choices of the operator, or of the app.
public struct Policy: Sendable, Equatable {
    /// The accepted releases.
    public enum Follow: String, Sendable, CaseIterable {
        /// Only upward.
        case newer
        /// Whatever differs from what is installed.
        case match

        /// Whether an older release may be installed.
        public func takesOlder(_ allowDowngrade: Bool) -> Bool { self == .match || allowDowngrade }
    }
    /// The accepted releases.
    public var follow: Follow
    /// Whether an older release is accepted, too.
    public var allowDowngrade: Bool
    /// Whether an older release may be installed, because of `follow` or of `allowDowngrade`.
    public var takesOlder: Bool { follow.takesOlder(allowDowngrade) }
    /// The version of the app, if it is known.
    public var appVersion: Version?
    /// The version of moult.
    public var moultVersion: Version
    /// The databases whose files the release may take over from the user, or from another kind.
    public var takeOver: Set<String> = []
    /// Whether rows that the installed release preserves may stay behind in quarantine.
    public var acceptUnpreserved = false
    /// The directory of caches, where it is not the store.
    public var cacheRoot: String?
    /// How long the check of a database may take.
    public var checkTime = CheckTime()
    /// How deeply this machine checks each file of a release, whatever its publisher has proven; nil if that is enough.
    public var verify: Database.Depth?
    /// Whether each update keeps the file that it finds as it is, as a generation of its own, and not only the first one.
    public var alwaysAdopts = false
    /// The time by which something has expired.
    public var now: Timestamp

    /// Decisions as an operator makes them.
    public init(
        follow: Follow, allowDowngrade: Bool = false, appVersion: Version? = nil, moultVersion: Version,
        cacheRoot: String? = nil, now: Timestamp = .now
    ) {
        self.cacheRoot = cacheRoot
        self.follow = follow
        self.allowDowngrade = allowDowngrade
        self.appVersion = appVersion
        self.moultVersion = moultVersion
        self.now = now
    }
}

/// How much of the processor the check of a database may take, because a hostile one can keep SQLite busy for days.
public struct CheckTime: Sendable, Equatable {
    /// The possible settings of an operator: up to a week.
    public static let range = 1...604_800
    /// Seconds, if the operator has set them; else it depends on the size.
    public var fixed: Int?
    /// Whether a release is tried by its publisher, who gets a quarter, so that slower machines can install it.
    public var isTrial: Bool

    /// As an operator or a publisher has it.
    public init(fixed: Int? = nil, isTrial: Bool = false) { (self.fixed, self.isTrial) = (fixed, isTrial) }

    /// Seconds of the processor: usually 60 for each gigabyte, and 30 at least.
    public func seconds(for size: Int) -> Int {
        let whole = fixed ?? max(30, size / 1_000_000_000 * 60 + size % 1_000_000_000 * 60 / 1_000_000_000)
        return isTrial ? max(1, whole / 4) : whole
    }
}

/// A look at the store, with no way to change it.
public protocol StoreView: Sendable {
    /// The store's directory.
    var root: String { get }
    /// The full path of a file of the store; a full path stays as it is.
    func path(_ name: String) -> String
    /// The file at a path of the store, without following links.
    func look(_ path: String) throws -> Found
    /// The digest of the release content by which a shared database at a path is marked; nil without a mark.
    func marker(_ path: String) throws -> String?
    /// Whether a file is at a path, or where a link at it leads.
    func leads(_ path: String) throws -> Bool
    /// The file at the place of a generation: a directory if it is kept.
    func look(forGeneration generation: String) throws -> Found
    /// Whether a path is the stable link to a sealed database.
    func isLinked(_ path: String, to member: String) throws -> Bool
    /// Where a sealed file of a generation lies.
    func path(ofMember member: String, in generation: String) -> String
    /// The database that the newest kept release with any database at a path has there.
    func earlierDatabase(at path: String) throws -> Database?
    /// Whether a kept generation's files are the very ones that were sealed; throws what is wrong with them.
    func proveSeal(of generation: String) throws
}

/// The file at a path.
public enum Found: Sendable, Equatable {
    /// Nothing is there.
    case nothing
    /// A regular file.
    case file(size: Int)
    /// A symbolic link of moult's to a read-only database, and its target.
    case sealedLink(to: String)
    /// Any other symbolic link, and what it points at.
    case link(to: String)
    /// A directory.
    case directory
    /// A device, a pipe, a socket.
    case other
}

extension StoreView {
    /// No mark: for views that look at names only.
    public func marker(_ path: String) throws -> String? { nil }
    /// None: for views of a store without earlier releases.
    public func earlierDatabase(at path: String) throws -> Database? { nil }

    /// For views that look at names only.
    public func leads(_ path: String) throws -> Bool { try look(path) != .nothing }

    /// For stores whose databases lie in their own directory.
    public func path(_ name: String) -> String { name.hasPrefix("/") ? name : "\(root)/\(name)" }
}

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

    /// The path of an unpacked member of the bundle; a file taken from there is moved, not copied.
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
    /// Is what is in service what was proven?
    case verify

    public static func < (a: Phase, b: Phase) -> Bool {
        (allCases.firstIndex(of: a) ?? 0) < (allCases.firstIndex(of: b) ?? 0)
    }
}
