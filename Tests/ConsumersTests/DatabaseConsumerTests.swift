import Moult
import MoultBasics
import MoultFiles
import Synchronization
import TestSupport
import Testing

/// Consumers in the app that runs the update.
@Suite struct DatabaseConsumerTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
    }

    /// Records its calls in a list that it shares with other consumers.
    private struct ObservingSink: DatabaseConsumer {
        final class Notes: Sendable {
            private let notes = Mutex<[String]>([])
            var all: [String] { notes.withLock { $0 } }
            func add(_ note: String) { notes.withLock { $0.append(note) } }
        }
        let name: String
        let notes: Notes

        func release(_ change: DatabaseChange) { note("release", change) }
        func reload(_ change: DatabaseChange) { note(change.isInstalled ? "reload" : "undone", change) }

        private func note(_ call: String, _ change: DatabaseChange) {
            notes.add("\(name) \(call) \(change.databases.map(\.name).joined(separator: " ")) \(change.version ?? "-")")
        }
    }

    /// A screen of an app that uses a connection and must release it.
    private actor Screen: DatabaseConsumer {
        let store: Store
        private var connection: StoreConnection?

        init(_ store: Store) throws {
            self.store = store
            connection = try store.connect()
        }

        func release(_ change: DatabaseChange) throws {
            try connection?.close()
            connection = nil
        }
        func reload(_ change: DatabaseChange) throws { connection = try store.connect() }
        func value() throws -> String? {
            try connection?.texts("SELECT release FROM pantry.pantry").first?.first ?? nil
        }
    }

    @Test func `the consumer that was registered last releases first`() throws {
        let (store, notes) = (shop.store, ObservingSink.Notes())
        for name in ["a", "b"] { store.register(ObservingSink(name: name, notes: notes), named: name) }
        let gone = store.register(ObservingSink(name: "gone", notes: notes))
        gone.cancel()
        store.register(ObservingSink(name: "food", notes: notes), for: ["food"])
        try store.updateBlocking(to: shop.release(2))
        #expect(
            notes.all == [
                "b release pantry 1.0.0", "a release pantry 1.0.0", "a reload food pantry 2.0.0",
                "b reload food pantry 2.0.0", "food reload food 2.0.0",
            ])
        // Consumers are also called for a rollback.
        try store.rollbackBlocking(reason: "test")
        #expect(notes.all.last == "food reload food 1.0.0")
    }

    @Test func `an app that keeps its database open reads the new content`() async throws {
        let store = shop.store
        let screen = try Screen(store)
        #expect(try await screen.value() == "1")
        try await store.update(to: shop.release(2))
        #expect(try await screen.value() == "2")
    }

    @Test func `a consumer that throws prevents the update`() throws {
        struct Busy: DatabaseConsumer {
            struct Editing: Error {}
            func release(_ change: DatabaseChange) throws { throw Editing() }
            func reload(_ change: DatabaseChange) {}
        }
        let (store, notes) = (shop.store, ObservingSink.Notes())
        store.register(Busy())
        store.register(ObservingSink(name: "a", notes: notes))
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: shop.release(2)) }
        #expect(error?.outcome == .busy)
        #expect(error?.description.hasPrefix("the consumer Busy does not release pantry: Editing()") == true)
        #expect(notes.all == ["a release pantry 1.0.0", "a undone food pantry 1.0.0"])
        #expect(try store.lease().version == "1.0.0")
    }

    @Test func `an update does not wait for a consumer that exceeds its timeout`() throws {
        struct Slow: DatabaseConsumer {
            func release(_ change: DatabaseChange) async throws { try await Task.sleep(for: .seconds(60)) }
            func reload(_ change: DatabaseChange) {}
        }
        let store = shop.store
        store.register(Slow(), timeout: .seconds(1))
        let start = ContinuousClock.now
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: shop.release(2)) }
        #expect(error?.outcome == .busy)
        #expect(error?.why == "the release callback of this process did not return in time")
        #expect(ContinuousClock.now - start < .seconds(10))
    }

    @Test func `a release is rolled back if a consumer with rollBack cannot reload it`() throws {
        struct Picky: DatabaseConsumer {
            struct Bad: Error {}
            func release(_ change: DatabaseChange) {}
            func reload(_ change: DatabaseChange) throws { if change.version == "2.0.0" { throw Bad() } }
        }
        let store = shop.store
        store.register(Picky(), onReloadFailure: .rollBack)
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: shop.release(2)) }
        #expect(error?.outcome == .undone)
        #expect(try store.lease().version == "1.0.0")
    }
}
