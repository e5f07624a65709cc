internal import MoultBasics
internal import MoultFiles

/// A release that was put into service: the content of all its databases is there.
///
///     for try await event in store.events where event.databases.contains("phrases") {
///         print("phrases changed with \(event.version)")
///     }
public struct StoreEvent: Sendable, Equatable, CustomStringConvertible {
    /// The generation installed now.
    public let generation: String
    /// The version of that generation.
    public let version: String
    /// The previously observed generation; nil if there was none.
    public let previous: String?
    /// The names of the databases whose content may have changed; views must reload these.
    public let databases: [String]

    /// A line such as `2.0.0+5e6f7a8b, was 1.0.0+1a2b3c4d: food phrases`, as printed by `moult watch`.
    public var description: String {
        "\(generation)\(previous.map { ", was \($0)" } ?? ""): \(databases.joined(separator: " "))"
    }
}

extension Store {
    /// The releases put into service after the first call of `next`, each once its last database has its new content. The kernel
    /// reports changes to the store, so nothing is polled.
    ///
    ///     for try await event in store.events { print("now at \(event.version)") }
    ///
    /// To keep a connection up to date, use `events(since:)`: a release may be installed before the first call of `next`.
    public var events: StoreEvents { StoreEvents(directory: directory, since: nil) }

    /// Returns the same sequence as `events`, and also reports what was put into service since the lease was taken. A lease may be
    /// taken in the middle of an update, which is reported when it is complete.
    ///
    ///     for try await event in store.events(since: connection.lease) {
    ///         connection = try store.connect()
    ///     }
    public func events(since lease: StoreLease) -> StoreEvents {
        StoreEvents(directory: directory, since: lease.seen)
    }
}

/// The releases put into service in a store. Each iteration uses its own thread, which ends with the iteration or its task.
///
///     let lease = try store.lease()
///     for try await event in store.events(since: lease) { print("now at \(event.version)") }
public struct StoreEvents: AsyncSequence, Sendable {
    let directory: String
    let since: Announcement.Seen?

    public func makeAsyncIterator() -> AsyncThrowingStream<StoreEvent, any Error>.Iterator {
        AsyncThrowingStream<StoreEvent, any Error> { continuation in
            do {
                let follower = try Advice.forApps { try Follower(StoreLayout(root: directory), since: since) }
                continuation.onTermination = { _ in follower.cancel() }
                try Threads.detach {
                    do {
                        while let change = try Advice.forApps(follower.next) { continuation.yield(StoreEvent(change)) }
                        continuation.finish()
                    } catch { continuation.finish(throwing: error) }
                }
            } catch { continuation.finish(throwing: error) }
        }.makeAsyncIterator()
    }
}

extension StoreEvent {
    init(_ change: Follower.Change) {
        self.init(
            generation: change.generation, version: change.version, previous: change.previous,
            databases: change.databases)
    }
}
