internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension Store {
    /// Opens one database of the installed release. If the database cannot be loaded and `policy` permits, replaces it once
    /// with a new one from the installed release.
    ///
    /// This covers every way in which a database can fail to load: a file that is empty or not a database, a torn header, a
    /// journal or `-wal` that belongs to another file, a directory in its place, missing permission. The connection's
    /// `recovered` describes the recovery. If another process holds a lock or the disk fails, this throws and changes nothing.
    /// A second failure shortly after a recovery also throws, even in another process, so recovery cannot loop.
    public func open(_ name: String, recovering policy: Recovery = .never) throws -> StoreConnection {
        try Advice.forApps { try opened(name, policy) }
    }

    private func opened(_ name: String, _ policy: Recovery) throws -> StoreConnection {
        try recoverInterruptedWork()
        let lease = try heldLease()
        let database = try lease.installed.database(name)
        if database.kind.isSealed { return try StoreConnection(lease: lease, only: name) }
        guard let why = try fault(database, lease) else { return try StoreConnection(lease: lease, only: name) }
        let path = try lease.path(of: name)
        guard policy == .setUserDataAside || policy == .cachesOnly && database.kind.isDisposable else {
            throw try MoultError.willNotLoad(database, path, why)
        }
        if try wasResetJustNow(name) { throw MoultError.failedAgain(path, why) }
        let reset = try orchestrator().reset(
            name, why: why, setsUserDataAside: policy == .setUserDataAside, wait: 10,
            isNeeded: { try fault(database, lease) != nil }
        ).reset
        if let still = try fault(database, lease) { throw MoultError.failedAgain(path, still) }
        return try StoreConnection(
            lease: lease, only: name,
            recovered: reset.map { Recovered(why: why, setAside: $0.setAside, salvaged: $0.salvaged) })
    }

    /// Sets a writable database and its sidecars aside and creates a new database at its path. Also works if
    /// something other than a database is there.
    ///
    /// User data is set aside only with `settingUserDataAside`, and is not deleted.
    @discardableResult
    public func reset(
        _ name: String, settingUserDataAside: Bool = false, reason: String = "requested by the app",
        waiting: Duration = .seconds(10)
    ) throws -> Recovered {
        try Advice.forApps {
            let reset = try orchestrator().reset(
                name, why: reason, setsUserDataAside: settingUserDataAside, wait: waiting.wholeSeconds
            ).reset
            return Recovered(why: reason, setAside: reset?.setAside, salvaged: reset?.salvaged)
        }
    }

    private func fault(_ database: Database, _ lease: StoreLease) throws -> String? {
        let assessment = try Assessment(of: lease.installed, in: StoreSnapshot(StoreLayout(root: directory)))
        let fault = try assessment.state(of: database, .glance).fault
        return fault?.kind == .unmigrated ? nil : fault?.what
    }

    /// Returns whether the database was recreated within the last minute; if so, recreating it again would not help.
    private func wasResetJustNow(_ name: String) throws -> Bool {
        let layout = try StoreLayout(root: directory)
        let sets = try QuarantineShelf(layout: layout, settings: Settings.read(layout)).sets()
        return sets.contains { $0.record?.database == name && Timestamp.now.seconds - $0.since.seconds < 60 }
    }
}

/// How to handle a database that cannot be loaded.
///
///     let connection = try store.open("notes", recovering: .setUserDataAside)
public enum Recovery: Sendable, CaseIterable {
    /// Change nothing; the error names the file.
    case never
    /// Replace a cache with an empty one; leave user data unchanged.
    case cachesOnly
    /// Also set user data aside, without deleting it, and replace it with a new database.
    case setUserDataAside
}

/// Describes a database that was replaced with a new one.
///
///     let connection = try store.open("notes", recovering: .setUserDataAside)
///     if let recovered = connection.recovered {
///         print("started over: \(recovered.why)")
///         print("the old notes: \(recovered.setAside ?? "none"), readable rows: \(recovered.salvaged ?? "none")")
///     }
public struct Recovered: Sendable {
    /// The fault of the old database.
    public let why: String
    /// The directory with the old file and its sidecars; nil if there were none.
    public let setAside: String?
    /// A database with the rows that could be salvaged; nil if there were none, or the database was a cache.
    public let salvaged: String?
}

/// The state of a cache after it was opened.
///
///     switch try Store.cache(at: path, schema: "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB)") {
///     case .ready: break
///     case .fresh(let why): print("fetch everything again: \(why)")
///     }
public enum CacheState: Sendable, Equatable {
    /// The cache existed with the schema that the app expects.
    case ready
    /// The cache is empty, so fetch the data again. The text gives the reason.
    case fresh(String)
}

extension Store {
    /// Ensures that a cache, a database that the app can recreate, exists at this path with this schema. Needs no store and no
    /// release.
    ///
    ///     if case .fresh = try Store.cache(at: path, schema: "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB)") {
    ///         // fetch again
    ///     }
    ///
    /// Schemas are compared by structure: white space, comments, quotes and the order of statements make no difference, but the
    /// order of columns does. If the SQL sets `application_id` or `user_version`, they are compared too. A database that does
    /// not match, is damaged, stays locked or cannot be checked is removed with all its sidecars and replaced by an empty one
    /// in a single step. Several processes may call this at once; one of them does the work. Call this before you open the
    /// database.
    public static func cache(at path: String, schema: String) throws -> CacheState {
        try Advice.forApps {
            switch try StandaloneCache(path, .replaceOpen).prepare(StandaloneCache.Expected(sql: schema)) {
            case .ready: .ready
            case .recreated(let why, _): .fresh(why)
            }
        }
    }
}
