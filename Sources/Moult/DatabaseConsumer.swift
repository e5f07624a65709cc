internal import MoultBasics
internal import MoultStore
internal import Synchronization

/// A part of an app that has databases open, and is told when they change.
///
/// Before a database that is written to is replaced, everybody who is concerned with it is told to let go, the last one
/// registered first. After the update everybody is told to open again what they need, the first one registered first.
/// A synchronous method fits, too. Both run while whoever called `update` waits, so they must not need its thread.
public protocol DatabaseConsumer: Sendable {
    /// Closes every connection to these databases and lets go of all that came from one. An error, or taking longer than
    /// the time that was given, keeps the update from being made.
    func release(_ change: DatabaseChange) async throws
    /// Opens again what it needs; for sealed databases this is the only call.
    func reload(_ change: DatabaseChange) async throws
}

/// What happens to databases, as a consumer is told.
public struct DatabaseChange: Sendable, Equatable {
    /// One database that changes.
    public struct Database: Sendable, Equatable {
        /// Its name in the manifest.
        public let name: String
        /// The stable path of its file.
        public let path: String
        /// The tables with other rows or columns; nil if that is not known: all may be.
        public let tables: [String]?
    }

    /// The databases that change and that the consumer is concerned with.
    public let databases: [Database]
    /// The generation that is in service at this moment; nil if there is none.
    public let generation: String?
    /// The version of that generation.
    public let version: String?
    /// For a reload: false if the update failed, and everything is as it was before.
    public let isInstalled: Bool

    init(_ message: ConsumerMessage) {
        databases = message.databases.map { Database(name: $0.name, path: $0.path, tables: $0.tables) }
        generation = message.current?.generation
        version = message.current.map { "\($0.version)" }
        isInstalled = message.outcome == .installed
    }
}

/// What becomes of a release that a consumer cannot reload.
public enum ReloadFailure: Sendable {
    /// It stays installed, and the failure is told as a warning.
    case report
    /// It is rolled back and put on hold.
    case rollBack
}

extension Store {
    /// Registers a consumer with this store and its copies, until the registration is cancelled.
    ///
    /// `databases` are those that it is concerned with, else all. Only updates that are made through this value or a copy
    /// of it call it; of those by other processes tell `events`.
    @discardableResult
    public func register(
        _ consumer: any DatabaseConsumer, named name: String? = nil, for databases: [String]? = nil,
        timeout seconds: Int = 10, onReloadFailure: ReloadFailure = .report
    ) -> ConsumerRegistration {
        let means = AppConsumer(
            release: { try await consumer.release(DatabaseChange($0)) },
            reload: { try await consumer.reload(DatabaseChange($0)) })
        return consumers.add(
            Consumer(
                name: name ?? "\(type(of: consumer))", databases: databases, timeout: seconds,
                isFatal: onReloadFailure == .rollBack, means: .app(means)))
    }
}

/// A consumer's place among the others of a store.
public struct ConsumerRegistration: Sendable {
    let name: String
    let registry: ConsumerRegistry

    /// From now on it is not called any more.
    public func cancel() { registry.remove(name) }
}

/// The consumers of a store inside of this process; shared by all copies of the store.
final class ConsumerRegistry: Sendable {
    private let consumers = Mutex<[Consumer]>([])

    var all: [Consumer] { consumers.withLock { $0 } }

    /// Two of the same name are told apart by a number.
    func add(_ consumer: Consumer) -> ConsumerRegistration {
        consumers.withLock { consumers in
            var consumer = consumer
            var number = 2
            let name = consumer.name
            while consumers.contains(where: { $0.name == consumer.name }) {
                consumer.name = "\(name) \(number)"
                number += 1
            }
            consumers.append(consumer)
            return ConsumerRegistration(name: consumer.name, registry: self)
        }
    }

    func remove(_ name: String) { consumers.withLock { $0.removeAll { $0.name == name } } }
}
