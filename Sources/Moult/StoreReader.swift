/// What an app reads from a store: a `Store`, or in tests a `TestStore` of the product MoultTesting.
///
///     func words(_ store: any StoreReader) throws -> [[SQLValue]] {
///         try store.connect().rows("SELECT danish FROM phrases.phrase")
///     }
public protocol StoreReader: Sendable {
    /// The store's directory.
    var directory: String { get }
    /// Opens all databases of the installed release on one connection.
    func connect(group: String?, refusingOldData: Bool) throws -> StoreConnection
    /// Takes a lease, which keeps the installed generation in place.
    func lease() throws -> StoreLease
    /// Returns the stable path of a database, given its name in the manifest.
    func path(of name: String) throws -> String
    /// Returns the installed release, and whether its databases are healthy.
    func status() throws -> StoreStatus
    /// The releases put into service from now on.
    var events: StoreEvents { get }
    /// Returns the releases put into service since the lease was taken.
    func events(since lease: StoreLease) -> StoreEvents
    /// Returns the same releases with their changed rows.
    func changes(since lease: StoreLease, limit: Int) -> StoreEvents
    /// Returns the rows that differ between an earlier release and the installed one.
    func changes(since release: String, limit: Int) async throws -> [RowChanges]
}

extension StoreReader {
    /// Opens all databases of the installed release on one connection.
    public func connect() throws -> StoreConnection { try connect(group: nil, refusingOldData: false) }
    /// Returns the releases put into service since the lease was taken, with their changed rows.
    public func changes(since lease: StoreLease) -> StoreEvents {
        changes(since: lease, limit: RowChanges.standardLimit)
    }
    /// Returns the rows that differ between an earlier release and the installed one.
    public func changes(since release: String) async throws -> [RowChanges] {
        try await changes(since: release, limit: RowChanges.standardLimit)
    }
}

extension Store: StoreReader {}
