internal import BuiltInSteps
internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
public import StepKit
internal import Synchronization

/// The directory that holds an app's databases, kept up to date release by release.
///
///     let store = Store(at: "/var/lib/myapp")
///     try await store.update(to: "/usr/share/myapp/manifest.json")
///     let connection = try store.connect()
///
/// Slow functions are asynchronous and run on a separate thread, so that they do not block Swift's thread pool. Synchronous
/// code can use the functions whose names end in `Blocking`.
public struct Store: Sendable {
    /// The store's directory.
    public let directory: String
    private let keys: [String]
    private let steps: StepSet
    let log: StoreLog?

    /// Creates a reference to a store. Reads nothing, and creates nothing on disk.
    ///
    /// `keys` are lines of public keys, as in a `.pub` file. A store created through this value accepts only releases signed
    /// with them, and an existing store must trust exactly these keys. Without keys, a new store accepts unsigned releases from
    /// files, and none from the network. `steps` are added to the built-in ones; manifests refer to them by name. `log` gets a line for
    /// each event.
    public init(at directory: String, trusting keys: [String] = [], steps: [any Step] = [], log: StoreLog? = nil) {
        (self.directory, self.keys, self.log) = (directory, keys, log)
        self.steps = StepSet.builtIn.adding(steps)
    }

    /// Returns whether this release is installed and complete, with no operation pending. Takes only a few system calls; opens
    /// a database only if it has changed since the last update; writes nothing.
    public func isCurrent(_ manifest: String) throws -> Bool {
        try Advice.forApps {
            guard let bytes = try Files.read(manifest, limit: Manifest.largest) else { return false }
            return try NoOpCheck(StoreSnapshot(StoreLayout(root: directory))).isCurrent(bytes, of: manifest)
        }
    }

    /// Returns the changes that `update` would make, without making them. The store must exist.
    public func plan(_ manifest: String, follow: Policy.Follow? = nil, app: Version? = nil) throws -> UpdatePlan {
        try Advice.forApps {
            try requireSameKeys()
            return UpdatePlan(try orchestrator().plan(ReleaseFile(manifest), UpdateRequest(follow: follow, app: app)))
        }
    }

    /// Installs a release unless it is already installed, and creates the store if necessary. If this throws, the previous
    /// state is unchanged, except if the error has the outcome `stuck`: then the update could be neither finished nor undone,
    /// and the error says what to do.
    ///
    /// `follow` determines whether an older release is accepted; without it, the store's settings apply. A store created here
    /// follows `match`, so that a downgraded app gets its own data back. If the task is cancelled before anything has changed,
    /// this throws `CancellationError`; after that, the update is finished.
    @discardableResult
    public func update(
        to manifest: String, follow: Policy.Follow? = nil, app: Version? = nil, waiting: Duration = .seconds(10),
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) async throws -> Update {
        try await Self.onThread { stop in try update(to: manifest, follow, app, waiting, progress, stop) }
    }

    /// Installs a release like `update`, for synchronous code. Blocks the thread until the update ends.
    @available(*, noasync, message: "It blocks the thread: use 'await update(to:)'")
    @discardableResult
    public func updateBlocking(
        to manifest: String, follow: Policy.Follow? = nil, app: Version? = nil, waiting: Duration = .seconds(10),
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) throws -> Update { try update(to: manifest, follow, app, waiting, progress) { false } }

    private func update(
        to manifest: String, _ follow: Policy.Follow?, _ app: Version?, _ waiting: Duration,
        _ progress: @escaping @Sendable (UpdateProgress) -> Void, _ stop: @escaping @Sendable () -> Bool
    ) throws -> Update {
        try logging("update") {
            let orchestrator = try orchestrator(progress, stop)
            let release = try ReleaseFile(manifest)
            let isNew = try orchestrator.createIfMissing(
                for: release, trusting: try trusted(), wait: waiting.wholeSeconds)
            try requireSameKeys()
            return try orchestrator.removingStoreOnFailure(isNew: isNew) {
                Update(
                    try orchestrator.update(
                        release, UpdateRequest(follow: follow, app: app), wait: waiting.wholeSeconds))
            }
        }
    }

    /// Rolls back to a kept generation, given by its version or name, or by default to the newest older release that is not on
    /// hold. Places a hold on the release that was installed before.
    @discardableResult
    public func rollback(
        to version: String? = nil, reason: String, waiting: Duration = .seconds(10)
    ) async throws -> Update {
        try await Self.onThread { stop in try rollback(to: version, reason, waiting, stop) }
    }

    /// Rolls back like `rollback`, for synchronous code. Blocks the thread until the rollback ends.
    @available(*, noasync, message: "It blocks the thread: use 'await rollback(to:reason:)'")
    @discardableResult
    public func rollbackBlocking(
        to version: String? = nil, reason: String, waiting: Duration = .seconds(10)
    ) throws -> Update {
        try rollback(to: version, reason, waiting) { false }
    }

    private func rollback(
        to version: String?, _ reason: String, _ waiting: Duration, _ stop: @escaping @Sendable () -> Bool
    ) throws -> Update {
        try logging("rollback") {
            Update(try orchestrator(stop: stop).rollback(to: version, reason: reason, wait: waiting.wholeSeconds))
        }
    }

    /// Opens all databases of the installed release on one connection.
    ///
    /// Interrupted work is finished or undone first, if that changes only files in the directory of the store. Otherwise, as with a
    /// directory for caches elsewhere, with consumers, with steps, or with a database behind a link, it is left to `update`,
    /// `recover` or `moult recover`, and the databases are opened as they are.
    ///
    /// The connection holds a lease: its generation stays while the connection is open, even if another release is installed.
    ///
    /// A release with more databases than SQLite can attach divides them into groups; each group opens on its own connection.
    ///
    /// With `refusingOldData`, throws `MoultError.Code.tooOld` if the data is older than `maxAge` in `moult.json`.
    public func connect(group: String? = nil, refusingOldData: Bool = false) throws -> StoreConnection {
        try Advice.forApps {
            if refusingOldData { try DataAge(StoreSnapshot(StoreLayout(root: directory)))?.require() }
            return try openConnection(group: group)
        }
    }

    /// Does the same as `connect`, with advice for operators in errors.
    package func openConnection(group: String? = nil, recovering: Bool = true) throws -> StoreConnection {
        if recovering { try recoverInterruptedWork() }
        return try StoreConnection(lease: heldLease(), group: group)
    }

    /// Takes a lease, which keeps the installed generation in place, for callers that open its files themselves.
    public func lease() throws -> StoreLease { try Advice.forApps { try heldLease() } }

    /// Does the same as `lease`, with advice for operators in errors.
    package func heldLease() throws -> StoreLease {
        let layout = try StoreLayout(root: directory)
        guard let lease = try Lease.take(layout) else { throw try MoultError.empty(layout) }
        return try StoreLease(lease, layout)
    }

    /// Returns the stable path of a database, given its name in the manifest. The path stays the same across releases.
    ///
    /// Code that opens several read-only databases, or reopens one later, should use a `lease()` and its paths: a switch
    /// between two opens would mix two releases.
    public func path(of name: String) throws -> String {
        try Advice.forApps {
            let layout = try StoreLayout(root: directory)
            let store = StoreSnapshot(layout)
            guard let installed = try store.installed else { throw try MoultError.empty(layout) }
            return try store.place(of: installed.database(name))
        }
    }

    func orchestrator(
        _ progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in },
        stop: @escaping @Sendable () -> Bool = { false }
    ) throws -> Orchestrator { try orchestrator(progress, stop) }

    private func orchestrator(
        _ progress: @escaping @Sendable (UpdateProgress) -> Void, _ stop: @escaping @Sendable () -> Bool
    ) throws -> Orchestrator {
        let watcher = Watcher(
            tell: { event in
                log?.write(event)
                if let event = UpdateProgress(event) { progress(event) }
            }, shouldStop: stop)
        return try Orchestrator(
            root: directory, steps: steps, watcher: watcher,
            consumers: ConsumerOptions(inProcess: ConsumerRegistry.consumers(of: directory)))
    }

    func trusted() throws -> TrustedKeys? {
        keys.isEmpty
            ? nil
            : TrustedKeys(try keys.map { TrustedKeys.Entry(key: try PublicKey(base64: $0, named: "a trusted key")) })
    }

    /// Throws if this value has keys that differ from those that the store trusts.
    func requireSameKeys() throws {
        guard let trusted = try trusted() else { return }
        let layout = try StoreLayout(root: directory)
        let settings = try Settings.read(layout)
        if settings.keys?.entries.map(\.key) == trusted.entries.map(\.key) { return }
        throw MoultError(
            .distrusted, .refused, what: "the store \(layout.root) does not trust the keys that the app specifies",
            why: settings.keys == nil ? "\(layout.settings) has no keys" : "\(layout.settings) has different keys",
            now: "Add the app's keys to \"keys\" in \(layout.settings), or use another directory.")
    }

    func recoverInterruptedWork() throws {
        do { try orchestrator().recoverIfIdle() } catch {
            // A reader without write permission still sees a complete release, either the old or the new one.
            if !Files.isDenied(error) { throw error }
        }
    }
}

extension StepSet {
    /// The five built-in steps. Programs specified in a store's settings are added to them.
    package static let builtIn = {
        var set = StepSet(
            check: VersionCheckStep(), delete: DeleteStep(), copy: CopyStep(), attach: AttachStep(),
            verify: VerifyStep())
        set.external = { ExternalStep($0) }
        return set
    }()
}

extension Store {
    /// Returns the version of the newest release that the feed offers this store; nil if it is already installed.
    ///
    /// Throws if the feed cannot be reached or verified; nil never means a failure.
    public func newest(app: Version? = nil) async throws -> String? {
        try await Self.onThread { stop in
            try Advice.forApps {
                try requireSameKeys()
                return try orchestrator(stop: stop).check(FeedRequest(UpdateRequest(app: app))).newest?.version
                    .description
            }
        }
    }

    /// Installs the newest release that the feed in `moult.json` offers this store, if any. Outside the `window` in `moult.json`, only
    /// downloads it.
    @discardableResult
    public func follow(
        app: Version? = nil, waiting: Duration = .seconds(10),
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) async throws -> Update {
        try await Self.onThread { stop in
            try logging("update") {
                try requireSameKeys()
                return Update(
                    try orchestrator(progress, stop).follow(
                        FeedRequest(UpdateRequest(app: app)), wait: waiting.wholeSeconds
                    ).result)
            }
        }
    }

    /// Runs blocking work on a separate thread. `stop` reports whether the task was cancelled.
    static func onThread<R: Sendable>(
        _ body: @escaping @Sendable (_ stop: @escaping @Sendable () -> Bool) throws -> R
    ) async throws -> R {
        let isCancelled = Atomic(false)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                do {
                    try Threads.detach {
                        continuation.resume(
                            with: Result {
                                do { return try body { isCancelled.load(ordering: .relaxed) } } catch let error
                                    as MoultError
                                    where error.code == .interrupted && isCancelled.load(ordering: .relaxed)
                                { throw CancellationError() }
                            })
                    }
                } catch { continuation.resume(throwing: error) }
            }
        } onCancel: {
            isCancelled.store(true, ordering: .relaxed)
        }
    }
}

extension Duration {
    /// The duration in whole seconds, rounded up.
    var wholeSeconds: Int { max(0, Int(clamping: components.seconds) + (components.attoseconds > 0 ? 1 : 0)) }
}
