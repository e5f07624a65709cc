internal import MoultFiles
internal import MoultStore

/// A release that has come into service.
///
///     for try await event in store.events where event.databases.contains("phrases") {
///         print("phrases changed with \(event.version)")
///     }
public struct StoreEvent: Sendable, Equatable {
    /// The generation that is installed now.
    public let generation: String
    /// Its version.
    public let version: String
    /// The generation that was seen before, if there was one.
    public let previous: String?
    /// The databases whose content has changed, by name: what a view has to read again.
    public let databases: [String]
}

extension Store {
    /// Every release that comes into service from the first `next` on, told by the kernel: nothing is polled.
    ///
    ///     for try await event in store.events {
    ///         connection = try store.connect()
    ///     }
    public var events: StoreEvents { StoreEvents(directory: directory, since: nil) }

    /// The same, with what has come since a generation: follow from `lease.generation` on, and nothing is lost between.
    public func events(since generation: String) -> StoreEvents {
        StoreEvents(directory: directory, since: generation)
    }
}

/// The releases that come into service in a store. Each iteration has a separate thread, which ends with it or its task.
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
