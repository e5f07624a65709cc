internal import MoultBasics
internal import MoultEngine
internal import MoultFiles
internal import MoultStore
internal import StepKit

extension Store {
    /// Opens one database of the installed release; if it does not load and `policy` allows it, an empty one replaces it,
    /// once.
    ///
    /// This works on anything that does not load: a file that is not a database or is empty, a torn header, a journal or
    /// `-wal` of another file, a directory in its place, missing permission. `recovered` of the connection says what was
    /// done. A lock that another process holds and a failing disk are thrown and change nothing; so is a second failure at
    /// once, also of the next process: a safe fallback, not a loop.
    public func open(_ name: String, recovering policy: Recovery = .never) throws -> StoreConnection {
        try Advice.forApps { try opened(name, policy) }
    }

    private func opened(_ name: String, _ policy: Recovery) throws -> StoreConnection {
        try settle()
        let lease = try heldLease()
        let database = try lease.installed.database(name)
        if database.kind.isSealed { return try StoreConnection(lease: lease, only: name) }
        guard let why = try fault(database, lease) else { return try StoreConnection(lease: lease, only: name) }
        let path = try lease.path(of: name)
        guard policy == .setUserDataAside || policy == .cachesOnly && database.kind.isDisposable else {
            throw StoreErrors.willNotLoad(database, path, why)
        }
        if try wasResetJustNow(name) { throw StoreErrors.failedAgain(path, why) }
        let reset = try orchestrator().reset(
            name, why: why, setsUserDataAside: policy == .setUserDataAside, wait: 10,
            isNeeded: { try fault(database, lease) != nil }
        ).reset
        if let still = try fault(database, lease) { throw StoreErrors.failedAgain(path, still) }
        return try StoreConnection(
            lease: lease, only: name,
            recovered: reset.map { Recovered(why: why, setAside: $0.setAside, salvaged: $0.salvaged) })
    }

    /// Sets a writable database aside with all files next to it and replaces it by an empty one, whatever is at its path.
    ///
    /// User data is set aside only with `settingUserDataAside`; nothing is ever deleted.
    @discardableResult
    public func reset(
        _ name: String, settingUserDataAside: Bool = false, reason: String = "the app asked for it",
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
        return try assessment.finding(of: database, .glance).fault
    }

    /// Whether the database was recreated within the last minute: then something else is wrong.
    private func wasResetJustNow(_ name: String) throws -> Bool {
        let layout = try StoreLayout(root: directory)
        let sets = try QuarantineShelf(layout: layout, settings: Settings.read(layout)).sets()
        return sets.contains { $0.record?.database == name && Timestamp.now.seconds - $0.since.seconds < 60 }
    }
}

/// What to do about a database that does not load.
///
///     let connection = try store.open("notes", recovering: .setUserDataAside)
public enum Recovery: Sendable, CaseIterable {
    /// Nothing: the error names the file.
    case never
    /// A cache is replaced by an empty one; user data stays as it is.
    case cachesOnly
    /// User data is set aside, too, and replaced by an empty database; nothing is ever deleted.
    case setUserDataAside
}

/// A database that was replaced by an empty one.
///
///     let connection = try store.open("notes", recovering: .setUserDataAside)
///     if let recovered = connection.recovered {
///         print("started over: \(recovered.why)")
///         print("the old notes: \(recovered.setAside ?? "none"), readable rows: \(recovered.salvaged ?? "none")")
///     }
public struct Recovered: Sendable {
    /// The fault of the old one.
    public let why: String
    /// The directory in which the old files are, with everything that lay next to them; nil if there were none.
    public let setAside: String?
    /// A database with the rows that could still be read; nil if there were none, or it was a cache.
    public let salvaged: String?
}

/// Whether a cache has what an app expects in it.
///
///     switch try Store.cache(at: path, schema: "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB)") {
///     case .ready: break
///     case .fresh(let why): print("fetch everything again: \(why)")
///     }
public enum CacheState: Sendable, Equatable {
    /// It was there, and its schema is the one that the app expects.
    case ready
    /// It is empty: fetch again. The text says why.
    case fresh(String)
}

extension Store {
    /// Ensures that a database which can be recreated exists with this schema; needs no store and no release.
    ///
    ///     if case .fresh = try Store.cache(at: path, schema: "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB)") {
    ///         // fetch again
    ///     }
    ///
    /// Schemas are compared by their structure: white space, quotes and order make no difference. Where the SQL sets
    /// `application_id` or `user_version`, those count, too. A database that does not match, is damaged, is locked for good
    /// or cannot be judged is removed with all files next to it, and an empty database takes its place in one step. Several
    /// processes may call this at once: one of them does it. Call it before you open the database.
    public static func cache(at path: String, schema: String) throws -> CacheState {
        try Advice.forApps {
            switch try StandaloneCache(path, .replaceOpen).prepare(StandaloneCache.Expected(sql: schema)) {
            case .ready: .ready
            case .recreated(let why): .fresh(why)
            }
        }
    }
}
