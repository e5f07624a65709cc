import Moult
import MoultTesting
import TestSupport
import Testing

/// What an app may expect of a store, tried with `Store` and with `TestStore`.
@Suite struct StoreContractTests {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case store
        case testStore
        var testDescription: String { rawValue }

        func make() throws -> any Installing { self == .store ? try RealStore() : try FastStore() }
    }

    /// A store with a read-only database `food`, a shared one `pantry` and a user database `diary`.
    protocol Installing {
        var reader: any StoreReader { get }
        /// Installs release N.0.0. Release 1 has food 1 and 2, each later one changes food 1, and adds its number.
        func install(_ number: Int) throws
    }

    static func food(_ number: Int) -> String {
        """
        CREATE TABLE food(id INTEGER PRIMARY KEY, name, kept DEFAULT 'x');
        INSERT INTO food(id, name) VALUES (1, 'bread \(number)'), (2, 'rye');
        \(number > 1 ? "INSERT INTO food(id, name) VALUES (10 * \(number), 'new')" : "");
        """
    }
    static let diary = "CREATE TABLE note(text)"

    struct RealStore: Installing {
        let scratch: Scratch
        let maker: ReleaseMaker
        var reader: any StoreReader { Store(at: scratch.path("store")) }

        init() throws {
            scratch = try Scratch()
            maker = try ReleaseMaker(in: scratch.path("releases"))
        }

        func install(_ number: Int) throws {
            let manifest = try maker.make(
                "\(number).0.0", sequence: number,
                [
                    .reference("food", food(number)), .shared("pantry", food(number), more: [.init("preserve", [])]),
                    .user("diary", diary),
                ])
            try Store(at: scratch.path("store")).updateBlocking(to: manifest)
        }
    }

    final class FastStore: Installing {
        private let store: TestStore
        var reader: any StoreReader { store }
        private var isNew = true

        init() throws { store = try TestStore(Self.databases(1)) }

        private static func databases(_ number: Int) -> [TestStore.Database] {
            [.reference("food", food(number)), .shared("pantry", food(number)), .user("diary", diary)]
        }

        func install(_ number: Int) throws {
            if number > 1 { try store.install("\(number).0.0", Self.databases(number)) }
        }
    }

    private func started(_ kind: Kind) throws -> any Installing {
        let store = try kind.make()
        try store.install(1)
        return store
    }

    @Test(arguments: Kind.allCases) func `one connection has all databases`(_ kind: Kind) throws {
        let store = try started(kind)
        let connection = try store.reader.connect()
        #expect(connection.lease.version == "1.0.0")
        #expect(try connection.rows("SELECT name FROM food.food WHERE id = 1") == [["bread 1"]])
        #expect(try connection.execute("INSERT INTO note VALUES ('mine')") == 1)
        #expect(throws: MoultError.self) { try connection.execute("INSERT INTO food.food(name) VALUES ('x')") }
        try connection.close()
    }

    @Test(arguments: Kind.allCases) func `a connection keeps its release until it is opened again`(_ kind: Kind) throws
    {
        let store = try started(kind)
        let old = try store.reader.connect()
        try old.execute("INSERT INTO note VALUES ('mine')")
        try store.install(2)
        #expect(try old.rows("SELECT name FROM food.food WHERE id = 1") == [["bread 1"]])
        #expect(try old.lease.isOutdated())
        let new = try store.reader.connect()
        #expect(try new.rows("SELECT name FROM food.food WHERE id = 1") == [["bread 2"]])
        #expect(try new.rows("SELECT name FROM pantry.food WHERE id = 1") == [["bread 2"]])
        #expect(try new.rows("SELECT text FROM note") == [["mine"]])
        try old.close()
        try new.close()
    }

    @Test(arguments: Kind.allCases) func `events report each release once`(_ kind: Kind) async throws {
        let store = try started(kind)
        var events = store.reader.events(since: try store.reader.lease()).makeAsyncIterator()
        for number in 2...3 {
            try store.install(number)
            let event = try await events.next()
            #expect(event?.version == "\(number).0.0")
            #expect(event?.databases == ["food", "pantry"])
            #expect(event?.changes == nil)
        }
    }

    @Test(arguments: Kind.allCases) func `events have the keys of the changed rows`(_ kind: Kind) async throws {
        let store = try started(kind)
        let first = try store.reader.lease()
        var events = store.reader.changes(since: first).makeAsyncIterator()
        try store.install(2)
        let changes = try #require(try await events.next()?.changes)
        #expect(changes.map(\.database) == ["food", "pantry"])
        for change in changes {
            let table = try #require(change.table("FOOD"))
            #expect(table.key == ["id"])
            #expect((table.inserted, table.updated, table.deleted) == ([[20]], [[1]], []))
            #expect("\(change)" == "\(change.database): food +1 ~1 -0")
        }
        try store.install(3)
        let next = try #require(try await events.next()?.changes)
        #expect(next.compactMap { $0.table("food")?.deleted } == [[[20]], [[20]]])
        #expect(next.compactMap { $0.table("food")?.inserted } == [[[30]], [[30]]])
        // What two updates changed in a shared database is not known.
        let both = try await store.reader.changes(since: "1.0.0")
        #expect(both.first?.table("food")?.inserted == [[30]])
        #expect(both.last?.reload == "its changes were not recorded")
        #expect(try await store.reader.changes(since: "3.0.0") == [])
        let few = try await store.reader.changes(since: first.generation, limit: 1)
        #expect(few.first?.table("food")?.reload == "more than 1 row changed")
    }

    @Test(arguments: Kind.allCases) func `paths stay, and the status is good`(_ kind: Kind) throws {
        let store = try started(kind)
        let before = try ["food", "pantry", "diary"].map(store.reader.path)
        try store.install(2)
        #expect(try ["food", "pantry", "diary"].map(store.reader.path) == before)
        let status = try store.reader.status()
        #expect(status.version == "2.0.0")
        #expect(status.findings.isEmpty, "\(status.findings)")
        #expect(throws: MoultError.self) { try store.reader.path(of: "foo") }
    }

    @Test func `a test store takes milliseconds, and leaves nothing`() throws {
        let clock = ContinuousClock()
        var directory = ""
        var times: [Duration] = []
        for _ in 0..<9 {
            times.append(
                try clock.measure {
                    let store = try TestStore([.reference("food", Self.food(1)), .user("diary", Self.diary)])
                    directory = store.directory
                    try store.connect().close()
                })
        }
        // A store of `update` takes more than ten times as long, also on a busy machine.
        #expect(times.min() ?? .seconds(1) < .milliseconds(50), "\(times)")
        #expect(try !Shell.run(["ls", directory]).errors.isEmpty)
    }
}
