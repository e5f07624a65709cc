import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// Updates from bundles, as an app makes them.
@Suite struct UpdateTests {
    let scratch: Scratch
    let maker: ReleaseMaker

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
    }

    private func food(_ rows: Int) -> ReleaseMaker.Source {
        .reference(
            "food",
            "CREATE TABLE food(id INTEGER PRIMARY KEY); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < \(rows)) INSERT INTO food SELECT i FROM n;"
        )
    }
    private let user = ReleaseMaker.Source.user("user", "CREATE TABLE note(text);")

    /// Other programs have made these bundles, and this process has no command that could read them.
    @Test(arguments: [ReleaseMaker.Format.xz, .gz, .tar, .zip])
    func `an app without the command refuses the archives of other programs`(_ format: ReleaseMaker.Format) throws {
        let manifest = try maker.make("1.0.0", sequence: 1, [food(7), user], format: format)
        let store = Store(at: scratch.path("store"))
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: manifest) }
        #expect(error?.code == .archiveProcess && error?.outcome == .failed, "\(String(describing: error))")
        #expect(try Files.facts(scratch.path("store/.moult/current")) == nil)
    }

    @Test func `a release is installed from a bundle made by moult`() throws {
        let manifest = try maker.make("1.0.0", sequence: 1, [food(7), user])
        let store = Store(at: scratch.path("store"))
        try store.updateBlocking(to: manifest)
        let connection = try store.connect()
        #expect(try connection.texts("SELECT count(*) FROM food.food") == [["7"]])
        try connection.execute("INSERT INTO note VALUES('mine')")
        try connection.close()
        #expect(try store.isCurrent(manifest))
    }

    @Test func `a reader of the old release finishes undisturbed`() throws {
        let store = Store(at: scratch.path("store"))
        try store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [food(5), user]))
        let reader = try store.connect()
        #expect(try reader.texts("SELECT count(*) FROM food.food") == [["5"]])
        try store.updateBlocking(to: maker.make("2.0.0", sequence: 2, [food(9), user]))
        #expect(try reader.texts("SELECT count(*) FROM food.food") == [["5"]])
        #expect(try reader.lease.isOutdated())
        let next = try store.connect()
        #expect(try next.texts("SELECT count(*) FROM food.food") == [["9"]])
        try next.close()
        try reader.close()
    }

    @Test func `an update keeps user data`() throws {
        let store = Store(at: scratch.path("store"))
        try store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [food(5), user]))
        let connection = try store.connect()
        try connection.execute("INSERT INTO note VALUES('mine')")
        try connection.close()
        let newTemplate = ReleaseMaker.Source.user(
            "user", "CREATE TABLE note(text); INSERT INTO note VALUES('shipped');")
        try store.updateBlocking(to: maker.make("2.0.0", sequence: 2, [food(9), newTemplate]))
        let after = try store.connect()
        #expect(try after.rows("SELECT text FROM note") == [["mine"]])
        try after.close()
    }

    /// Scenario 1: a downgraded app gets its old data back.
    @Test func `follow match installs older releases, and follow newer does not`() throws {
        let store = Store(at: scratch.path("store"))
        let one = try maker.make("1.0.0", sequence: 1, [food(5)])
        let two = try maker.make("2.0.0", sequence: 2, [food(9)])
        try store.updateBlocking(to: two)
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: one, follow: .newer) }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "release 1.0.0 is older than the installed 2.0.0")
        try store.updateBlocking(to: one, follow: .match)
        let connection = try store.connect()
        #expect(try connection.texts("SELECT count(*) FROM food.food") == [["5"]])
        try connection.close()
    }

    @Test func `a rollback puts the bad release on hold`() throws {
        let store = Store(at: scratch.path("store"))
        try store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [food(5)]))
        let two = try maker.make("2.0.0", sequence: 2, [food(9)])
        try store.updateBlocking(to: two)
        try store.rollbackBlocking(reason: "it is wrong")
        let connection = try store.connect()
        #expect(try connection.texts("SELECT count(*) FROM food.food") == [["5"]])
        try connection.close()
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: two) }
        #expect(error?.outcome == .refused)
        #expect(
            error?.description == "release 2.0.0 is on hold: it is wrong. Remove the hold with: Store.unhold(\"2.0.0\")"
        )
    }

    @Test func `a plain file that existed before the first install is kept`() throws {
        let store = Store(at: try scratch.directory("store"))
        let old = scratch.path("store/food.db")
        // A killed app has left the database in WAL mode without a checkpoint.
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.execute("pragma journal_mode=wal")
            c.execute("create table food(id)")
            c.executemany("insert into food values(?)", [(i,) for i in range(500)])
            c.commit()
            os._exit(0)
            """, old,
        ])
        #expect(try Files.facts("\(old)-wal") != nil)
        try store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [food(5)]))
        #expect(try Shell.must(["sqlite3", old, "select count(*) from food"]) == "5\n")
        #expect(try Files.facts("\(old)-wal") == nil)
        let kept = try #require(try store.quarantine().first)
        #expect(kept.reason == "it existed before the release")
        #expect(try Shell.must(["sqlite3", "\(kept.directory)/food.db", "select count(*) from food"]) == "500\n")
    }

    @Test func `the asynchronous update installs a release`() async throws {
        let store = Store(at: scratch.path("store"))
        let manifest = try maker.make("1.0.0", sequence: 1, [food(5)])
        #expect(try await store.update(to: manifest).isInstalled)
        #expect(try store.isCurrent(manifest))
    }

    @Test func `a damaged file is repaired by applying again`() throws {
        let store = Store(at: scratch.path("store"))
        let manifest = try maker.make("1.0.0", sequence: 1, [food(5)])
        try store.updateBlocking(to: manifest)
        let file = try store.lease().path(of: "food")
        try Shell.must(["chmod", "u+w", Files.directory(of: file), file])
        try Shell.must(["sqlite3", file, "delete from food"])
        #expect(try store.isCurrent(manifest) == false)
        try store.updateBlocking(to: manifest)
        #expect(try store.isCurrent(manifest))
        let connection = try store.connect()
        #expect(try connection.texts("SELECT count(*) FROM food.food") == [["5"]])
        try connection.close()
    }
}
