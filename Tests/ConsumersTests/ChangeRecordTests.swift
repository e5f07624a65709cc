import Moult
import MoultBasics
import MoultFiles
import MoultRows
import MoultSQLite
import TestSupport
import Testing

/// Tests the records of changed rows: who writes them, and what happens without them.
@Suite struct ChangeRecordTests {
    let shop: ConsumerShop

    init() async throws {
        shop = try ConsumerShop()
        try await shop.store.update(to: shop.release(1))
        _ = try await shop.store.changes(since: shop.store.lease().generation)
    }

    /// The comparison of a shared database costs as much as reading it twice.
    @Test func `an update records nothing if no app has asked for changed rows`() async throws {
        try Files.removeTree("\(shop.root)/.moult/changes")
        let first = try shop.store.lease().generation
        try await shop.store.update(to: shop.release(2))
        #expect(try Files.facts("\(shop.root)/.moult/changes") == nil)
        let found = try await shop.store.changes(since: first)
        #expect(found.last?.reload == "its changes were not recorded" && found.first?.reload == nil)
        let second = try shop.store.lease().generation
        try await shop.store.update(to: shop.release(3))
        #expect(try await shop.store.changes(since: second).last?.reload == nil)
    }

    private var records: [String] {
        get throws { try Files.list("\(shop.root)/.moult/changes").sorted() }
    }

    @Test func `a comparison is recorded once, and removed with its generations`() async throws {
        let first = try shop.store.lease().generation
        try await shop.store.update(to: shop.release(2))
        #expect(try records == ["update.json"])
        let found = try await shop.store.changes(since: first)
        #expect(found.map(\.description) == ["food: food +0 ~1 -0", "pantry: pantry +0 ~1 -0"])
        let second = try shop.store.lease().generation
        let name = "\(first.suffix(8))-\(second.suffix(8)).json"
        #expect(try records == [name, "update.json"])
        // The record is used: the older file could not be compared again.
        try Shell.must(
            ["sed", "-i", "s/\"updated\":\\[\\[1\\]\\]/\"updated\":[[7]]/", "\(shop.root)/.moult/changes/\(name)"])
        #expect(try await shop.store.changes(since: first).first?.table("food")?.updated == [[7]])
        try Files.replace("\(shop.root)/.moult/changes/\(name)", with: Array("{".utf8))
        #expect(try await shop.store.changes(since: first).first?.table("food")?.updated == [[1]])
        try shop.set("minimumAge", "0")
        for number in 3...4 { try await shop.store.update(to: shop.release(number)) }
        #expect(try records == ["update.json"])
        let gone = try await shop.store.changes(since: first)
        #expect(gone.first?.reload == "the earlier release was removed")
    }

    @Test func `rows that apps write between two updates are not reported`() async throws {
        try Shell.must(["sqlite3", shop.pantry, "INSERT INTO pantry VALUES ('mine')"])
        let first = try shop.store.lease().generation
        try await shop.store.update(to: shop.release(2))
        let pantry = try await shop.store.changes(since: first).last
        // The release does not preserve the row.
        #expect(pantry?.table("pantry")?.updated == [[1]])
        #expect(pantry?.table("pantry")?.deleted == [[2]])
    }

    @Test func `a row that an app writes during the update is not reported as a change`() async throws {
        let maker = try ReleaseMaker(in: shop.scratch.path("own"))
        let root = shop.scratch.path("busy")
        func release(_ number: Int) throws -> String {
            try maker.make(
                "\(number).0.0", sequence: number,
                [
                    .shared(
                        "pantry",
                        """
                        CREATE TABLE food(id INTEGER PRIMARY KEY, name, own DEFAULT 0);
                        INSERT INTO food(id, name) VALUES (1, 'bread \(number)'), (2, 'rye'), (\(2 + number), 'new');
                        """, more: [.init("preserve", [["table": "food", "where": "own = 1"]])]),
                    .user(
                        "diary", "CREATE TABLE note(text); PRAGMA user_version = \(number)",
                        migrations: number == 1
                            ? [:] : ["m/0002-tags.sql": "ALTER TABLE note ADD COLUMN tag; PRAGMA user_version = 2"]),
                ])
        }
        try await Store(at: root).update(to: release(1))
        _ = try await Store(at: root).changes(since: "1.0.0")
        let next = try release(2)
        // The update waits for this transaction when it has already copied the other database.
        let other = try Connection(path: "\(root)/diary.db", access: .readWrite)
        try other.execute("BEGIN IMMEDIATE")
        let update = Task { try await Store(at: root).update(to: next) }
        while try !Shell.must(["find", "\(root)/.moult/transactions"]).contains("/held/") { await Task.yield() }
        try Shell.must([
            "sqlite3", "-cmd", ".timeout 10000", "\(root)/pantry.db", "INSERT INTO food VALUES (50, 'mine', 1)",
        ])
        try other.execute("ROLLBACK")
        try other.close()
        _ = try await update.value
        let food = try await Store(at: root).changes(since: "1.0.0").first { $0.database == "pantry" }?.table("food")
        #expect(food?.reload == nil)
        #expect((food?.inserted, food?.updated, food?.deleted) == ([[4]], [[1]], [[3]]))
        #expect(try Shell.must(["sqlite3", "\(root)/pantry.db", "SELECT name FROM food WHERE id = 50"]) == "mine\n")
    }

    @Test func `a release that changes no database has no changes`() async throws {
        let first = try shop.store.lease()
        try Files.remove("\(shop.root)/.moult/changes/update.json")
        #expect(try await shop.store.changes(since: first.generation) == [])
        #expect(try await shop.store.changes(since: first.version) == [])
    }

    @Test func `watch prints the keys`() throws {
        let first = try shop.store.lease().generation
        try shop.store.updateBlocking(to: shop.release(2))
        let words = try [BuiltMoult.path(), "watch", "--store", shop.root, "--since", first, "--once"]
        let line = try Shell.must(words + ["--rows", "--json"])
        let event = try JSON(parsing: Array(line.utf8), source: "watch")
        #expect(
            event["changes"]?.array?.first
                == [
                    "name": "food",
                    "tables": [["name": "food", "key": ["rowid"], "inserted": [], "updated": [[1]], "deleted": []]],
                ])
        let text = try Shell.must(words + ["--rows"])
        #expect(
            text.split(separator: "\n").dropFirst().joined(separator: "\n")
                == "  food: food +0 ~1 -0\n  pantry: pantry +0 ~1 -0")
        let wrong = try Shell.run(words + ["--limit", "5"])
        #expect(wrong.status == 64)
        #expect(wrong.errors.contains("--limit needs --rows"))
    }
}
