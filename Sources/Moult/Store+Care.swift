internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import StepKit

/// Lets an app maintain its store without the command.
extension Store {
    /// Returns the installed release, and whether its databases are healthy. Opens databases that have changed since their last
    /// check; writes nothing.
    public func status() throws -> StoreStatus {
        try Advice.forApps { StoreStatus(try Status(of: StoreSnapshot(StoreLayout(root: directory)))) }
    }

    /// Checks the installed release and returns the findings; empty if there are none. `deep` reads every page of every database. A
    /// database that could not be checked has a finding of the kind `locked` or `denied`.
    public func verify(deep: Bool = false) async throws -> [Finding] {
        try await Self.onThread { _ in
            try Advice.forApps {
                try Verifier(StoreSnapshot(StoreLayout(root: directory))).verify([], deep: deep)
                    .compactMap { $0.finding?.advising(\.forApps) }
            }
        }
    }

    /// Blocks a version, a range such as `>=2.1 <3`, or every release (`*`).
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

    /// Removes a hold. `release` must be written exactly as in the hold. A rollback places a hold on the release that it
    /// replaces.
    public func unhold(_ release: String) throws { try Advice.forApps { _ = try orchestrator().unhold([release]) } }

    /// Returns the store's history, newest first.
    public func history(_ limit: Int = 100) throws -> [StoreHistoryEntry] {
        try Advice.forApps {
            let reader = try HistoryReader(StoreLayout(root: directory))
            var entries: [StoreHistoryEntry] = []
            while entries.count < limit, let entry = try reader.next() { entries.append(StoreHistoryEntry(entry)) }
            return entries
        }
    }

    /// Removes the oldest generations beyond those kept for rollbacks, and returns their names. Generations with a lease stay.
    @discardableResult
    public func clean(keep: Int? = nil) async throws -> [String] {
        try await Self.onThread { stop in
            try Advice.forApps { try orchestrator(stop: stop).clean(keep: keep).collected.removed }
        }
    }

    /// Returns the old database content that updates, rollbacks or resets have set aside, oldest first.
    public func quarantine() throws -> [QuarantinedDatabase] {
        try Advice.forApps { try orchestrator().quarantine().map { QuarantinedDatabase($0) } }
    }

    /// Finishes or undoes work that a crash interrupted, and repairs the store's own records. With `undo`, restores the
    /// previously installed release if an update cannot be finished. Returns what was finished or undone. `connect` and all
    /// functions that change the store finish or undo such work automatically.
    @discardableResult
    public func recover(undo: Bool = false) async throws -> [InterruptedUpdate] {
        try await Self.onThread { stop in
            try Advice.forApps {
                try orchestrator(stop: stop).recover(back: undo, wait: 10).map { InterruptedUpdate($0) }
            }
        }
    }
}

/// The state of a store and its installed release.
///
///     let status = try store.status()
///     print(status.product, status.version ?? "nothing installed")
///     for finding in status.findings { print(finding.severity, finding, finding.advice ?? "") }
public struct StoreStatus: Sendable {
    /// A database of the installed release.
    public struct Database: Sendable {
        /// The name in the manifest, and the stable path.
        public let name, path: String
        /// The size in bytes; nil if the file is missing.
        public let size: Int?
        /// The database's fault; nil if none is known.
        public let finding: Finding?
    }

    /// A release, or a range of releases, that must not be installed.
    public struct Hold: Sendable {
        /// A version, a range, or `*`.
        public let release: String
        /// The reason for the hold.
        public let reason: String
    }

    /// The product whose releases this store accepts.
    public let product: String
    /// The installed version and its generation; nil if nothing is installed.
    public let version, generation: String?
    /// The databases of the installed release.
    public let databases: [Database]
    /// The generations available for a rollback.
    public let kept: [String]
    /// The releases that must not be installed.
    public let holds: [Hold]
    /// What an operator should know, worst first: what `moult status` prints, and monitoring reports.
    public let findings: [Finding]
    /// Whether an interrupted operation is pending; the next change finishes or undoes it.
    public let isUnfinished: Bool
    /// Why the latest update failed; nil if one has succeeded since.
    public let failure: String?

    init(_ status: Status) {
        product = status.product
        (version, generation) = (status.current?.version?.description, status.current?.name)
        databases = status.databases.map {
            Database(
                name: $0.database.name, path: $0.path, size: $0.size,
                finding: ($0.fault ?? $0.findings.first { $0.kind == .blocked })?.advising(\.forApps))
        }
        kept = status.generations.filter { !$0.isCurrent }.map(\.name)
        holds = status.holds.all.map { Hold(release: $0.release, reason: $0.reason) }
        findings = status.findings().map { $0.advising(\.forApps) }
        isUnfinished = !status.unfinished.isEmpty
        failure = status.failure.map { $0.reason ?? $0.outcome.rawValue }
    }
}

/// An entry in a store's history.
///
///     for entry in try store.history(10) { print(entry.time, entry.action, entry.to, entry.isDone ? "done" : "failed") }
public struct StoreHistoryEntry: Sendable, CustomStringConvertible {
    /// The time when the operation ended, such as `2026-11-20T10:00:00Z`.
    public let time: String
    /// The operation, such as `update`, `rollback`, `reset` or `hold`.
    public let action: String
    /// The generations before and after the operation.
    public let from: String?, to: String
    /// Whether the operation succeeded, immediately or after an interruption.
    public let isDone: Bool
    /// The reason for the operation, or why it failed.
    public let reason: String?

    /// A line such as `2026-11-20T10:00:00Z update 1.0.0+1a2b3c4d -> 2.0.0+5e6f7a8b: done`.
    public var description: String {
        "\(time) \(action) \(from.map { "\($0) -> " } ?? "")\(to): \(isDone ? "done" : "failed")"
            + (reason.map { " (\($0))" } ?? "")
    }

    init(_ entry: History.Entry) {
        (time, action, from, to) = (entry.time.description, entry.action, entry.from, entry.to)
        (isDone, reason) = ([.done, .finished].contains(entry.outcome), entry.reason)
    }
}

/// Old content of a database, kept in quarantine.
///
///     for old in try store.quarantine() { print(old.id, old.reason ?? "", old.directory) }
public struct QuarantinedDatabase: Sendable {
    /// The name of this quarantined copy.
    public let id: String
    /// The name of the original database; nil if unknown.
    public let database: String?
    /// Why the content was set aside; nil if unknown.
    public let reason: String?
    /// The directory with the database file and its sidecars. Copy it before opening the database.
    public let directory: String
    /// The size in bytes.
    public let size: Int

    init(_ set: QuarantineShelf.Set) {
        (id, database, reason) = (set.id, set.record?.database, set.record?.why)
        (directory, size) = (set.directory, set.size)
    }
}
