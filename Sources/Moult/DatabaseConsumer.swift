internal import MoultBasics
internal import MoultFiles
internal import Synchronization

/// A part of an app that keeps databases open and is notified when they change.
///
/// Before a writable database is replaced, every consumer that uses it is asked to close it, in reverse order of registration.
/// After the update, every consumer of a changed database is asked to reopen its databases, in order of registration. An
/// implementation may also be synchronous. Both methods run while the caller of `update` waits, so they must not need the
/// caller's thread.
///
///     actor Library: DatabaseConsumer {
///         let store: Store
///         var connection: StoreConnection?
///
///         init(_ store: Store) { self.store = store }
///         func release(_ change: DatabaseChange) throws {
///             try connection?.close()
///             connection = nil
///         }
///         func reload(_ change: DatabaseChange) throws { connection = try store.connect() }
///     }
public protocol DatabaseConsumer: Sendable {
    /// Closes every connection to these databases and releases everything obtained from them. Throwing an error, or exceeding
    /// the time limit, stops the update.
    func release(_ change: DatabaseChange) async throws
    /// Reopens the consumer's databases. For read-only databases, only this method is called.
    func reload(_ change: DatabaseChange) async throws
}

/// A change to databases, as reported to a consumer.
///
///     func report(_ change: DatabaseChange) {
///         for database in change.databases { print(database.name, database.tables ?? ["all tables"]) }
///     }
public struct DatabaseChange: Sendable, Equatable {
    /// A database that changes.
    public struct Database: Sendable, Equatable {
        /// The database's name in the manifest.
        public let name: String
        /// The stable path of the database's file.
        public let path: String
        /// The tables whose rows or columns changed; nil if unknown, in which case any table may have changed.
        public let tables: [String]?
    }

    /// The databases that change, limited to those that the consumer is registered for.
    public let databases: [Database]
    /// The generation in service now; nil if nothing is installed.
    public let generation: String?
    /// The version of that generation.
    public let version: String?
    /// For a reload: false if the update failed and the previous state was restored.
    public let isInstalled: Bool

    init(_ message: ConsumerMessage) {
        databases = message.databases.map { Database(name: $0.name, path: $0.path, tables: $0.tables) }
        generation = message.current?.generation
        version = message.current.map { "\($0.version)" }
        isInstalled = message.outcome == .installed
    }
}

/// What to do with a release that a consumer fails to reload.
///
///     store.register(consumer, onReloadFailure: .rollBack)
public enum ReloadFailure: Sendable {
    /// Keep the release installed, and report the failure as a warning.
    case report
    /// Roll the release back, and put it on hold.
    case rollBack
}

extension Store {
    /// Registers a consumer for this store in this process until the registration is cancelled.
    ///
    /// `databases` limits the registration to those databases; without it, the consumer is called for all. Every update in this
    /// process calls the consumer, whichever `Store` value runs the update. For updates by other processes, use `events`.
    @discardableResult
    public func register(
        _ consumer: any DatabaseConsumer, named name: String? = nil, for databases: [String]? = nil,
        timeout: Duration = .seconds(10), onReloadFailure: ReloadFailure = .report
    ) -> ConsumerRegistration {
        let means = AppConsumer(
            release: { try await consumer.release(DatabaseChange($0)) },
            reload: { try await consumer.reload(DatabaseChange($0)) })
        return ConsumerRegistry.add(
            Consumer(
                name: name ?? "\(type(of: consumer))", databases: databases, timeout: timeout.wholeSeconds,
                isFatal: onReloadFailure == .rollBack, means: .app(means)), of: directory)
    }
}

/// A consumer's registration with a store.
///
///     let registration = store.register(consumer, for: ["phrases"])
///     registration.cancel()
public struct ConsumerRegistration: Sendable {
    fileprivate let number: Int

    /// Stops further calls to the consumer.
    public func cancel() { ConsumerRegistry.remove(number) }
}

/// The consumers in this process, each with the directory of its store.
enum ConsumerRegistry {
    private struct Entry: Sendable {
        let number: Int
        let directory: String
        let consumer: Consumer
    }

    private static let entries = Mutex<(next: Int, all: [Entry])>((0, []))

    /// Returns the consumers in order of registration.
    static func consumers(of directory: String) -> [Consumer] {
        let resolved = resolved(directory)
        return entries.withLock(\.all).filter { Self.resolved($0.directory) == resolved }.map(\.consumer)
    }

    /// Adds a consumer. If another consumer of the store has the same name, a number is appended to the new name.
    static func add(_ consumer: Consumer, of directory: String) -> ConsumerRegistration {
        let names = Set(consumers(of: directory).map(\.name))
        var consumer = consumer
        let name = consumer.name
        var number = 2
        while names.contains(consumer.name) {
            consumer.name = "\(name) \(number)"
            number += 1
        }
        return entries.withLock { entries in
            entries.next += 1
            entries.all.append(Entry(number: entries.next, directory: directory, consumer: consumer))
            return ConsumerRegistration(number: entries.next)
        }
    }

    static func remove(_ number: Int) { entries.withLock { $0.all.removeAll { $0.number == number } } }

    /// Returns the directory with symlinks resolved, because a store may be reached through several paths. A path that cannot
    /// be resolved is only made absolute.
    private static func resolved(_ directory: String) -> String {
        (try? Files.resolved(directory)) ?? (try? Files.absolute(directory)) ?? directory
    }
}
