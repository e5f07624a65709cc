internal import MoultBasics
internal import MoultEngine
internal import MoultFiles
internal import MoultSandbox
internal import MoultStore
internal import StepKit

/// The functions that an app needs to look after its store without the command.
extension Store {
    /// The installed release, and whether the databases are in their proper state. Opens a database that has changed since
    /// its last check; writes nothing.
    public func status() throws -> StoreStatus {
        try Advice.forApps { StoreStatus(try Status(of: StoreSnapshot(StoreLayout(root: directory)))) }
    }

    /// The faults of the installed release; empty if all is sound. With `deep` every page of every database is read.
    public func verify(deep: Bool = false) async throws -> [StoreFault] {
        try await Self.onThread { _ in
            try Advice.forApps {
                try Verifier(StoreSnapshot(StoreLayout(root: directory))).verify([], deep: deep)
                    .compactMap { StoreFault($0) }
            }
        }
    }

    /// Keeps a release out: a version, a range such as `>=2.1 <3`, or `*` for every release.
    public func hold(_ release: String, reason: String) throws {
        try Advice.forApps {
            guard Hold.isRelease(release) else {
                throw MoultError(
                    .refused, .usage, what: "\"\(release)\" cannot be put on hold",
                    why: "it is neither a version, nor a range, nor *")
            }
            _ = try orchestrator().hold([Hold(release: release, reason: reason, since: .now)])
        }
    }

    /// Lets a release in again, as it was put on hold; a rollback puts the release on hold that it leaves.
    public func unhold(_ release: String) throws {
        try Advice.forApps { _ = try orchestrator().unhold([release]) }
    }

    /// What happened to the store, the newest first.
    public func history(_ limit: Int = 100) throws -> [StoreHistoryEntry] {
        try Advice.forApps {
            let reader = try HistoryReader(StoreLayout(root: directory))
            var entries: [StoreHistoryEntry] = []
            while entries.count < limit, let entry = try reader.next() { entries.append(StoreHistoryEntry(entry)) }
            return entries
        }
    }

    /// Removes generations beyond those that are kept for rollbacks, the oldest first, and returns their names. One that a
    /// lease holds stays.
    @discardableResult
    public func clean(keep: Int? = nil) async throws -> [String] {
        try await Self.onThread { stop in
            try Advice.forApps { try orchestrator(stop: stop).clean(keep: keep).collected.removed }
        }
    }

    /// Old content of databases that an update, a rollback or a reset has set aside, the newest first.
    public func quarantine() throws -> [QuarantinedDatabase] {
        try Advice.forApps { try orchestrator().quarantine().map { QuarantinedDatabase($0) } }
    }

    /// Finishes or takes back what a crash left unfinished, and repairs the store's own records. Gives what was done, in
    /// words. `connect`, `update` and every other change do this on their own. With `undo` it goes back to what was installed
    /// before, for an update that cannot be finished.
    @discardableResult
    public func recover(undo: Bool = false) async throws -> [String] {
        try await Self.onThread { stop in
            try Advice.forApps { try orchestrator(stop: stop).recover(back: undo, wait: 10).map(\.text) }
        }
    }
}

/// The installed release of a store.
///
///     let status = try store.status()
///     print(status.product, status.version ?? "nothing installed")
///     for database in status.databases where database.fault != nil { print(database.name, database.fault ?? "") }
public struct StoreStatus: Sendable {
    /// A database of the installed release.
    public struct Database: Sendable {
        /// Its name in the manifest, and its stable path.
        public let name, path: String
        /// Bytes; nil if it is missing.
        public let size: Int?
        /// Its fault; nil if none is known.
        public let fault: String?
    }

    /// A release that must not be installed.
    public struct Hold: Sendable {
        /// A version, a range, or `*`.
        public let release: String
        /// Why it is on hold.
        public let reason: String
    }

    /// The store is for releases of this product.
    public let product: String
    /// The installed version and its generation; nil if nothing is installed.
    public let version, generation: String?
    /// The databases of the installed release.
    public let databases: [Database]
    /// The generations that can be rolled back to.
    public let kept: [String]
    /// The releases that must not be installed.
    public let holds: [Hold]
    /// Whether something was begun and not finished: the next change settles it.
    public let isUnfinished: Bool
    /// Why the newest update failed, if none has succeeded since.
    public let failure: String?

    init(_ status: Status) {
        product = status.product
        (version, generation) = (status.current?.version?.description, status.current?.name)
        databases = status.databases.map {
            Database(name: $0.name, path: $0.path, size: $0.size, fault: $0.fault)
        }
        kept = status.generations.filter { !$0.isCurrent }.map(\.name)
        holds = status.holds.all.map { Hold(release: $0.release, reason: $0.reason) }
        isUnfinished = !status.unfinished.isEmpty
        failure = status.failure.map { $0.reason ?? $0.outcome.rawValue }
    }
}

/// Something that is wrong with what is installed, or that could not be checked.
///
///     for fault in try await store.verify(deep: true) {
///         print(fault.isChecked ? "damaged:" : "not checked:", fault.subject, fault.text)
///     }
public struct StoreFault: Sendable {
    /// The database or record.
    public let subject: String
    /// The fault; if `isChecked` is false, the reason why it could not be checked.
    public let text: String
    /// False if the file is locked, or this user may not read it.
    public let isChecked: Bool

    init?(_ check: Verifier.Check) {
        guard check.finding != nil || check.isUnread else { return nil }
        subject = check.subject
        text = check.finding ?? check.notChecked.joined(separator: "; ")
        isChecked = !check.isUnread
    }
}

/// One thing that happened to a store.
///
///     for entry in try store.history(10) { print(entry.time, entry.action, entry.to, entry.isDone ? "done" : "failed") }
public struct StoreHistoryEntry: Sendable {
    /// When it ended, as in `2026-11-20T10:00:00Z`.
    public let time: String
    /// `update`, `rollback`, `reset`, `hold` and the like.
    public let action: String
    /// The generations before and after.
    public let from: String?, to: String
    /// Whether it succeeded, then or after an interruption.
    public let isDone: Bool
    /// Why it failed, or why it was done.
    public let reason: String?

    init(_ entry: History.Entry) {
        (time, action, from, to) = (entry.time.description, entry.action, entry.from, entry.to)
        (isDone, reason) = ([.done, .finished].contains(entry.outcome), entry.reason)
    }
}

/// Old content of a database.
///
///     for old in try store.quarantine() { print(old.id, old.reason ?? "", old.directory) }
public struct QuarantinedDatabase: Sendable {
    /// Its name.
    public let id: String
    /// The database it was; nil if that is not known.
    public let database: String?
    /// Why it was set aside; nil if that is not known.
    public let reason: String?
    /// The directory with the file and all that belongs to it. Copy it before you open it.
    public let directory: String
    /// Bytes.
    public let size: Int

    init(_ set: QuarantineShelf.Set) {
        (id, database, reason) = (set.id, set.record?.database, set.record?.why)
        (directory, size) = (set.directory, set.size)
    }
}

extension Status.File {
    /// Its known fault.
    fileprivate var fault: String? {
        switch state {
        case .sound, .changed, .living, .unverified: finding?.fault
        case .missing: note ?? "it is missing"
        case .damaged: note ?? "it is damaged"
        }
    }
}
