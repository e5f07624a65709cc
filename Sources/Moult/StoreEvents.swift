internal import MoultFiles
internal import MoultStore

/// A release that was put into service.
///
///     for try await event in store.events where event.databases.contains("phrases") {
///         print("phrases changed with \(event.version)")
///     }
public struct StoreEvent: Sendable, Equatable {
    /// The generation installed now.
    public let generation: String
    /// The version of that generation.
    public let version: String
    /// The previously observed generation; nil if there was none.
    public let previous: String?
    /// The names of the databases whose content changed; views must reload these.
    public let databases: [String]
}

extension Store {
    /// The releases put into service after the first call of `next`. The kernel reports changes to the store, so nothing is
    /// polled.
    ///
    ///     for try await event in store.events { print("now at \(event.version)") }
    ///
    /// To keep a connection up to date, use `events(since:)`: a release may be installed before the first call of `next`.
    public var events: StoreEvents { StoreEvents(directory: directory, since: nil) }

    /// Returns the same sequence as `events`, and also reports a switch to another release since `generation`. To miss none,
    /// start from the generation of a lease.
    ///
    ///     for try await event in store.events(since: connection.lease.generation) {
    ///         connection = try store.connect()
    ///     }
    public func events(since generation: String) -> StoreEvents {
        StoreEvents(directory: directory, since: generation)
    }
}

/// The releases put into service in a store. Each iteration uses its own thread, which ends with the iteration or its task.
///
///     let lease = try store.lease()
///     for try await event in store.events(since: lease.generation) { print("now at \(event.version)") }
public struct StoreEvents: AsyncSequence, Sendable {
    let directory: String
    let since: String?

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
