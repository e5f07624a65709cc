internal import MoultBasics
internal import MoultFiles
internal import MoultStore
internal import StepKit

extension Store {
    /// Opens one database of the installed release; if it will not load and `policy` allows it, it is begun anew, once.
    ///
    /// It works when nothing loads: a file that is no database, or of zero bytes, a torn header, a journal or `-wal` of
    /// another file, a directory in its place, no permission. `recovered` of the connection tells what was done. A lock
    /// that somebody holds, or a disk that fails, is thrown and changes nothing; so is a second failure at once, also of
    /// the next process: a safe fallback, and no loop.
    public func open(_ name: String, recovering policy: Recovery = .never) throws -> StoreConnection {
        try settle()
        let lease = try lease()
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

    /// Sets a living database aside with everything beside it and begins it anew, whatever is at its path.
    ///
    /// What people wrote is set aside only with `settingUserDataAside`; nothing is ever deleted.
    @discardableResult
    public func reset(
        _ name: String, settingUserDataAside: Bool = false, reason: String = "the app asked for it",
        waiting seconds: Int = 10
    ) throws -> Recovered {
        let reset = try orchestrator().reset(
            name, why: reason, setsUserDataAside: settingUserDataAside, wait: seconds
        ).reset
        return Recovered(why: reason, setAside: reset?.setAside, salvaged: reset?.salvaged)
    }

    private func fault(_ database: Database, _ lease: StoreLease) throws -> String? {
        let assessment = try Assessment(of: lease.installed, in: StoreSnapshot(StoreLayout(root: directory)))
        return try assessment.finding(of: database, .glance).fault
    }

    /// Whether the database was begun anew within the last minute: then something else is wrong.
    private func wasResetJustNow(_ name: String) throws -> Bool {
        let layout = try StoreLayout(root: directory)
        let sets = try QuarantineShelf(layout: layout, settings: Settings.read(layout)).sets()
        return sets.contains { $0.record?.database == name && Timestamp.now.seconds - $0.since.seconds < 60 }
    }
}
