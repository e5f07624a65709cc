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
    /// The changed rows of each of these databases; nil in a sequence that does not report them.
    public let changes: [RowChanges]?

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
    public var events: StoreEvents { StoreEvents(directory: directory, since: nil, limit: nil) }

    /// Returns the same sequence as `events`, and also reports what was put into service since the lease was taken. A lease may be
    /// taken in the middle of an update, which is reported when it is complete.
    ///
    ///     for try await event in store.events(since: connection.lease) {
    ///         connection = try store.connect()
    ///     }
    public func events(since lease: StoreLease) -> StoreEvents {
        StoreEvents(directory: directory, since: lease.seen, limit: nil)
    }

    /// Returns the same sequence as `events(since:)`, with the changed rows in each event. A table with more than `limit` changed
    /// rows must be read again as a whole. Updates record what they change in a shared database from the first call on.
    ///
    ///     for try await event in store.changes(since: connection.lease) {
    ///         connection = try store.connect()
    ///         for change in event.changes ?? [] { print(change) }
    ///     }
    public func changes(since lease: StoreLease, limit: Int = RowChanges.standardLimit) -> StoreEvents {
        StoreEvents(directory: directory, since: lease.seen, limit: limit)
    }

    /// Returns the rows that differ between an earlier release, given by its version or generation, and the installed one.
    ///
    /// The earlier release must still be kept, or all its databases must be read again. What an update changed in a shared database is
    /// known for the last update only, and from the first call on.
    public func changes(since release: String, limit: Int = RowChanges.standardLimit) async throws -> [RowChanges] {
        try await Self.onThread { _ in
            try Advice.forApps {
                let layout = try StoreLayout(root: directory)
                guard let installed = try Generation.currentName(layout) else { throw try MoultError.empty(layout) }
                ChangeRecord.want(layout)
                let found = try Generation.names(layout).sorted().last {
                    $0 == release || Generation.version(of: $0) == release
                }
                if found == installed { return [] }
                let now = try Generation.load(installed, in: layout).manifest
                // Compared with a generation that cannot be read, all databases count as changed.
                let before = found.flatMap { try? Generation.load($0, in: layout).manifest }
                return try ChangeRecord.changes(
                    of: now.changed(since: before), since: found, in: installed, layout, limit: limit
                ).map { RowChanges($0) }
            }
        }
    }
}

/// The releases put into service in a store. Each iteration uses its own thread, which ends with the iteration or its task.
///
///     let lease = try store.lease()
///     for try await event in store.events(since: lease) { print("now at \(event.version)") }
public struct StoreEvents: AsyncSequence, Sendable {
    let directory: String
    let since: Announcement.Seen?
    /// The limit on the changed rows of a table; nil to report no rows.
    let limit: Int?

    public func makeAsyncIterator() -> AsyncThrowingStream<StoreEvent, any Error>.Iterator {
        AsyncThrowingStream<StoreEvent, any Error> { continuation in
            do {
                if limit != nil { ChangeRecord.want(try StoreLayout(root: directory)) }
                let follower = try Advice.forApps { try Follower(StoreLayout(root: directory), since: since) }
                continuation.onTermination = { _ in follower.cancel() }
                try Threads.detach {
                    do {
                        while let change = try Advice.forApps(follower.next) { continuation.yield(try event(change)) }
                        continuation.finish()
                    } catch { continuation.finish(throwing: error) }
                }
            } catch { continuation.finish(throwing: error) }
        }.makeAsyncIterator()
    }

    private func event(_ change: Follower.Change) throws -> StoreEvent {
        guard let limit else { return StoreEvent(change, changes: nil) }
        return try Advice.forApps {
            let changes = try change.rows(StoreLayout(root: directory), limit: limit)
            return StoreEvent(change, changes: changes.map { RowChanges($0) })
        }
    }
}

extension StoreEvent {
    fileprivate init(_ change: Follower.Change, changes: [RowChanges]?) {
        self.init(
            generation: change.generation, version: change.version, previous: change.previous,
            databases: change.databases, changes: changes)
    }
}
