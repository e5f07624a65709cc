internal import BuiltInSteps
internal import ExternalSteps
internal import MoultBasics
package import MoultEngine
internal import MoultFiles
internal import MoultStore
public import StepKit

/// The directory that holds an app's databases, kept up to date release by release.
///
///     let store = Store(at: "/var/lib/myapp")
///     try store.update(to: "/usr/share/myapp/manifest.json", follow: .match)
///     let connection = try store.connect()
public struct Store: Sendable {
    /// The store's directory.
    public let directory: String
    private let steps: StepSet
    let consumers = ConsumerRegistry()

    /// Names a store; nothing is read or made yet. `steps` come in beside the built-in ones, as manifests name them.
    public init(at directory: String, steps: [any Step] = []) {
        self.directory = directory
        self.steps = StepSet.builtIn.adding(steps)
    }

    /// Whether this release is what is installed, whole and with nothing unfinished. A handful of small system calls; a
    /// database that has changed since the last update is opened, and nothing is written.
    public func isCurrent(_ manifest: String) throws -> Bool {
        guard let bytes = try Files.read(manifest, limit: Manifest.largest) else { return false }
        return try NoOpCheck(StoreSnapshot(StoreLayout(root: directory))).isCurrent(bytes, of: manifest)
    }

    /// What `update` would do; changes nothing.
    public func plan(_ manifest: String, follow: Policy.Follow? = nil, app: Version? = nil) throws -> UpdatePlan {
        UpdatePlan(try orchestrator().plan(UpdateRequest(manifest: manifest, follow: follow, app: app)))
    }

    /// Installs a release if it is not installed already; makes the store at the first time.
    ///
    /// With `match` whatever differs from what is installed is installed, so that a downgraded app gets its own data back;
    /// with `newer` only what is newer. On an error everything is as it was before. Blocks until it is done: see the
    /// asynchronous version for use on Swift's cooperative threads.
    @discardableResult
    public func update(
        to manifest: String, follow: Policy.Follow = .match, app: Version? = nil, waiting seconds: Int = 10,
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) throws -> Update {
        let watcher = Watcher(tell: { if let event = UpdateProgress($0) { progress(event) } })
        let orchestrator = try orchestrator(watcher)
        try orchestrator.createIfMissing(for: manifest, follow: follow)
        let result = try orchestrator.update(
            UpdateRequest(manifest: manifest, follow: follow, app: app), wait: seconds)
        return Update(result)
    }

    /// Goes back to the newest older release that is not on hold, or to a kept one by its version or name.
    @discardableResult
    public func rollback(to version: String? = nil, reason: String, waiting seconds: Int = 10) throws -> Update {
        Update(try orchestrator().rollback(to: version, reason: reason, wait: seconds))
    }

    /// Opens all databases of the installed release on one connection, after settling what a crash left unfinished.
    ///
    /// The connection holds a lease: its generation stays while it is open, whatever is installed meanwhile.
    public func connect() throws -> StoreConnection {
        try settle()
        return try StoreConnection(lease: lease())
    }

    /// Holds the installed generation in place, for those who open its files themselves.
    public func lease() throws -> StoreLease {
        let layout = try StoreLayout(root: directory)
        guard let lease = try Lease.take(layout) else { throw StoreErrors.empty(layout) }
        return try StoreLease(lease, layout)
    }

    /// The stable path of a database, by its name in the manifest: the same over all releases.
    ///
    /// Whoever opens several sealed databases, or opens one again later, takes a `lease()` and its paths instead: a
    /// switch between two opens would mix two releases.
    public func path(of name: String) throws -> String {
        let layout = try StoreLayout(root: directory)
        let store = StoreSnapshot(layout)
        guard let installed = try store.installed else { throw StoreErrors.empty(layout) }
        return try store.place(of: installed.database(name))
    }

    func orchestrator(_ watcher: Watcher = Watcher()) throws -> Orchestrator {
        try Orchestrator(
            root: directory, steps: steps, watcher: watcher, consumers: ConsumerOptions(inProcess: consumers.all))
    }

    func settle() throws {
        do { try orchestrator().settleIfIdle() } catch {
            // A reader without permission to write still gets a whole release: what is current is old or new, never both.
            if !Files.isDenied(error) { throw error }
        }
    }
}

extension StepSet {
    /// The five built-in steps; executables that a store's settings name come in beside them.
    package static let builtIn = {
        var set = StepSet(
            check: VersionCheckStep(), delete: DeleteStep(), copy: CopyStep(), attach: AttachStep(),
            verify: VerifyStep())
        set.external = { ExternalStep($0) }
        return set
    }()
}

extension Store {
    /// The version of the newest release that the store's feed has for it; nil if it is installed already.
    ///
    /// Throws if the feed cannot be asked or believed: that is never "nothing new".
    public func newest(app: Version? = nil) throws -> String? {
        try orchestrator().check(FeedRequest(app: app)).newest?.version.description
    }

    /// Brings in the newest release of the feed that `moult.json` names, if there is one for this store.
    @discardableResult
    public func follow(
        app: Version? = nil, waiting seconds: Int = 10,
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) throws -> Update {
        let watcher = Watcher(tell: { if let event = UpdateProgress($0) { progress(event) } })
        return Update(try orchestrator(watcher).follow(FeedRequest(app: app), wait: seconds).result)
    }
}
