internal import BuiltInSteps
internal import MoultBasics
package import MoultEngine
internal import MoultFiles
internal import MoultStore
internal import MoultTrust
public import StepKit
internal import Synchronization

/// The directory that holds an app's databases, kept up to date release by release.
///
///     let store = Store(at: "/var/lib/myapp")
///     try await store.update(to: "/usr/share/myapp/manifest.json")
///     let connection = try store.connect()
///
/// Slow functions are asynchronous and run on a separate thread, so that they do not block Swift's thread pool.
/// Synchronous code uses the functions whose names end in `Blocking`.
public struct Store: Sendable {
    /// The store's directory.
    public let directory: String
    private let keys: [String]
    private let steps: StepSet

    /// Names a store; nothing is read or made yet.
    ///
    /// `keys` are the lines of public keys as in a `.pub` file. A store that this value makes takes only what they signed, and
    /// a store that exists must have just these. Without keys, a store that is made here accepts unsigned releases from
    /// files, and none from the network. `steps` are added to the built-in ones; manifests name them.
    public init(at directory: String, trusting keys: [String] = [], steps: [any Step] = []) {
        (self.directory, self.keys) = (directory, keys)
        self.steps = StepSet.builtIn.adding(steps)
    }

    /// Whether this release is what is installed, whole and with nothing unfinished. A handful of small system calls; a
    /// database that has changed since the last update is opened, and nothing is written.
    public func isCurrent(_ manifest: String) throws -> Bool {
        try Advice.forApps {
            guard let bytes = try Files.read(manifest, limit: Manifest.largest) else { return false }
            return try NoOpCheck(StoreSnapshot(StoreLayout(root: directory))).isCurrent(bytes, of: manifest)
        }
    }

    /// What `update` would do; changes nothing. The store must be there.
    public func plan(_ manifest: String, follow: Policy.Follow? = nil, app: Version? = nil) throws -> UpdatePlan {
        try Advice.forApps {
            try proveKeys()
            return UpdatePlan(try orchestrator().plan(UpdateRequest(manifest: manifest, follow: follow, app: app)))
        }
    }

    /// Installs a release if it is not installed already; makes the store the first time. On an error everything is as it was
    /// before.
    ///
    /// `follow` decides whether an older release is accepted; by default the store's settings do. A store that is made here
    /// follows `match`, so that an app that was downgraded gets its own data back. If the task is cancelled before anything
    /// was changed, this throws `CancellationError`; later it is too late, and the update is finished.
    @discardableResult
    public func update(
        to manifest: String, follow: Policy.Follow? = nil, app: Version? = nil, waiting: Duration = .seconds(10),
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) async throws -> Update {
        try await Self.onThread { stop in
            try update(to: manifest, follow, app, waiting, progress, stop)
        }
    }

    /// The same as `update`, for code that is not asynchronous. Blocks its thread until it is done.
    @available(*, noasync, message: "It blocks the thread: use 'await update(to:)'")
    @discardableResult
    public func updateBlocking(
        to manifest: String, follow: Policy.Follow? = nil, app: Version? = nil, waiting: Duration = .seconds(10),
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) throws -> Update {
        try update(to: manifest, follow, app, waiting, progress) { false }
    }

    private func update(
        to manifest: String, _ follow: Policy.Follow?, _ app: Version?, _ waiting: Duration,
        _ progress: @escaping @Sendable (UpdateProgress) -> Void, _ stop: @escaping @Sendable () -> Bool
    ) throws -> Update {
        try Advice.forApps {
            let orchestrator = try orchestrator(progress, stop)
            let isNew = try orchestrator.createIfMissing(for: manifest, trusting: try trusted())
            try proveKeys()
            return try orchestrator.firstInstalling(isNew: isNew) {
                Update(
                    try orchestrator.update(
                        UpdateRequest(manifest: manifest, follow: follow, app: app), wait: waiting.wholeSeconds))
            }
        }
    }

    /// Goes back to the newest older release that is not on hold, or to a kept one by its version or name. The release that
    /// was installed is on hold from then on.
    @discardableResult
    public func rollback(
        to version: String? = nil, reason: String, waiting: Duration = .seconds(10)
    ) async throws -> Update {
        try await Self.onThread { stop in try rollback(to: version, reason, waiting, stop) }
    }

    /// The same as `rollback`, for code that is not asynchronous. Blocks its thread until it is done.
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
        try Advice.forApps {
            Update(
                try orchestrator(stop: stop).rollback(to: version, reason: reason, wait: waiting.wholeSeconds))
        }
    }

    /// Opens all databases of the installed release on one connection, after settling what a crash left unfinished.
    ///
    /// The connection holds a lease: its generation stays while it is open, whatever is installed meanwhile.
    ///
    /// A release with more databases than SQLite attaches has groups of them; each opens on a connection of its own.
    public func connect(group: String? = nil) throws -> StoreConnection {
        try Advice.forApps { try openConnection(group: group) }
    }

    /// The same, with advice for operators.
    package func openConnection(group: String? = nil) throws -> StoreConnection {
        try settle()
        return try StoreConnection(lease: heldLease(), group: group)
    }

    /// Holds the installed generation in place, for those who open its files themselves.
    public func lease() throws -> StoreLease { try Advice.forApps { try heldLease() } }

    /// The same, with advice for operators.
    package func heldLease() throws -> StoreLease {
        let layout = try StoreLayout(root: directory)
        guard let lease = try Lease.take(layout) else { throw StoreErrors.empty(layout) }
        return try StoreLease(lease, layout)
    }

    /// The stable path of a database, by its name in the manifest: the same over all releases.
    ///
    /// Code that opens several read-only databases, or opens one again later, takes a `lease()` and its paths instead: a
    /// switch between two opens would mix two releases.
    public func path(of name: String) throws -> String {
        try Advice.forApps {
            let layout = try StoreLayout(root: directory)
            let store = StoreSnapshot(layout)
            guard let installed = try store.installed else { throw StoreErrors.empty(layout) }
            return try store.place(of: installed.database(name))
        }
    }

    func orchestrator(
        _ progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in },
        stop: @escaping @Sendable () -> Bool = { false }
    ) throws -> Orchestrator {
        try orchestrator(progress, stop)
    }

    private func orchestrator(
        _ progress: @escaping @Sendable (UpdateProgress) -> Void, _ stop: @escaping @Sendable () -> Bool
    ) throws -> Orchestrator {
        let watcher = Watcher(tell: { if let event = UpdateProgress($0) { progress(event) } }, shouldStop: stop)
        return try Orchestrator(
            root: directory, steps: steps, watcher: watcher,
            consumers: ConsumerOptions(inProcess: ConsumerRegistry.consumers(of: directory)))
    }

    private func trusted() throws -> TrustedKeys? {
        keys.isEmpty
            ? nil
            : TrustedKeys(try keys.map { TrustedKeys.Entry(key: try PublicKey(base64: $0, named: "a trusted key")) })
    }

    /// Throws if this value names other keys than the store has.
    func proveKeys() throws {
        guard let trusted = try trusted() else { return }
        let layout = try StoreLayout(root: directory)
        let settings = try Settings.read(layout)
        if settings.keys?.entries.map(\.key) == trusted.entries.map(\.key) { return }
        throw MoultError(
            .distrusted, .refused, what: "the store \(layout.root) does not trust the keys that the app names",
            why: settings.keys == nil ? "it was created without keys" : "\(layout.settings) has others",
            now: "Put the app's keys into \"keys\" of \(layout.settings), or name another directory.")
    }

    func settle() throws {
        do { try orchestrator().recoverIfIdle() } catch {
            // A reader without permission to write still gets a whole release: what is current is old or new, never both.
            if !Files.isDenied(error) { throw error }
        }
    }
}

extension StepSet {
    /// The five built-in steps; executables that a store's settings name are added to them.
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
    public func newest(app: Version? = nil) async throws -> String? {
        try await Self.onThread { stop in
            try Advice.forApps {
                try proveKeys()
                return try orchestrator(stop: stop).check(FeedRequest(app: app)).newest?.version.description
            }
        }
    }

    /// Installs the newest release of the feed that `moult.json` names, if the feed has one for this store.
    @discardableResult
    public func follow(
        app: Version? = nil, waiting: Duration = .seconds(10),
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) async throws -> Update {
        try await Self.onThread { stop in
            try Advice.forApps {
                try proveKeys()
                return Update(
                    try orchestrator(progress, stop).follow(FeedRequest(app: app), wait: waiting.wholeSeconds).result)
            }
        }
    }

    /// Runs blocking work on a separate thread. `stop` says whether the task was cancelled.
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
                                {
                                    throw CancellationError()
                                }
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
    /// Seconds for what counts in whole ones, not less than was asked for.
    var wholeSeconds: Int { max(0, Int(clamping: components.seconds) + (components.attoseconds > 0 ? 1 : 0)) }
}
