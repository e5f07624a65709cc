// This single import gives an app the whole public API.
import Moult
import MoultFiles
import Synchronization
import TestSupport
import Testing

/// An app uses the library without any commands.
@Suite struct AppTests {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store
    let first: String

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: scratch.path("store"))
        first = try Self.make(maker, 1)
    }

    private static func make(_ maker: ReleaseMaker, _ number: Int) throws -> String {
        try maker.make(
            "\(number).0.0", sequence: number,
            [
                .reference("food", "CREATE TABLE food(release); INSERT INTO food VALUES(\(number))"),
                .user("notes", "CREATE TABLE note(value)"),
            ])
    }

    @Test func `update and plan both use the follow setting of the store by default`() async throws {
        let second = try Self.make(maker, 2)
        #expect(try await store.update(to: second).isInstalled)
        // A downgraded app gets its data back.
        #expect(try store.plan(first).changesStore)
        #expect(try await store.update(to: first).isInstalled)
        try scratch.must("sed -i 's/\"follow\": \"match\"/\"follow\": \"newer\"/' store/moult.json")
        try await store.update(to: second)
        #expect(throws: MoultError.self) { try store.plan(first) }
        let error = await #expect(throws: MoultError.self) { try await store.update(to: first) }
        #expect(error?.outcome == .refused)
        #expect(
            error?.now?.description
                == "To install it anyway: Store.update(to:follow: .match). To roll back instead: Store.rollback(to:reason:)"
        )
        #expect(try store.plan(first, follow: .match).changesStore)
        #expect(try await store.update(to: first, follow: .match).isInstalled)
    }

    @Test func `a cancelled update ends without changes`() async throws {
        try await store.update(to: first)
        let second = try Self.make(maker, 2)
        let other = try Program.python(
            "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('ready'); sys.stdin.read()",
            scratch.path("store/.moult/lock"))
        #expect(other.line() == "ready")
        let busy = await #expect(throws: MoultError.self) {
            try await store.update(to: second, waiting: .milliseconds(10))
        }
        #expect(busy?.outcome == .busy && busy?.code == .locked)
        #expect(
            busy?.now?.description.contains("waiting:") == true && busy?.now?.description.contains("--wait") == false,
            "\(busy?.now?.description ?? "")")
        let task = Task { try await store.update(to: second, waiting: .seconds(600)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        other.closeInput()
        #expect(other.wait() == 0)
        #expect(try store.status().version == "1.0.0")
    }

    @Test func `a store of an app accepts only files signed by its keys`() async throws {
        try scratch.must("moult keygen -q --no-password a && moult keygen -q --no-password b")
        func line(_ name: String) throws -> String {
            String(try scratch.text("\(name).pub").split(separator: "\n").last ?? "")
        }
        let (key, other) = (try line("a"), try line("b"))
        let trusting = Store(at: scratch.path("signed"), trusting: [key])
        let unsigned = await #expect(throws: MoultError.self) { try await trusting.update(to: first) }
        #expect(unsigned?.code == .unsigned)
        // The store that this call created is removed again.
        #expect(try Files.facts(scratch.path("signed/moult.json")) == nil)
        try scratch.must("moult sign -q -k a.key \(first)")
        #expect(try await trusting.update(to: first).isInstalled)
        for (keys, code) in [([other], MoultError.Code.distrusted), ([key, other], .distrusted)] {
            let error = await #expect(throws: MoultError.self) {
                try await Store(at: scratch.path("signed"), trusting: keys).update(to: first)
            }
            #expect(error?.code == code)
        }
        // A store that was created without keys does not count as a store with keys.
        try await store.update(to: first)
        let error = #expect(throws: MoultError.self) {
            try Store(at: scratch.path("store"), trusting: [key]).plan(first)
        }
        #expect(error?.code == .distrusted)
    }

    @Test func `a connection returns values unchanged`() async throws {
        try await store.update(to: first)
        let connection = try store.connect()
        let values: [SQLValue] = [
            nil, 7, .integer(.min), 2.5, "ä'\u{0}x", .text(""), .blob([0, 255, 0x80]), .blob([]), .real(1),
        ]
        for value in values { #expect(try connection.execute("INSERT INTO note VALUES (?)", [value]) == 1) }
        let rows = try connection.rows("SELECT value FROM note ORDER BY rowid")
        #expect(rows == values.map { [$0] })
        #expect(try connection.rows("SELECT rowid FROM note WHERE value = ?", [7]) == [[2]])
        #expect(try connection.rows("SELECT typeof(value) FROM note WHERE rowid = 7")[0][0].text == "blob")
        #expect(try connection.execute("UPDATE note SET value = 1") == values.count)
        for sql in ["SELECT 1; SELECT 2", "DELETE FROM note; DELETE FROM note", ""] {
            #expect(throws: MoultError.self) { try connection.rows(sql) }
            #expect(throws: MoultError.self) { try connection.execute(sql) }
        }
        #expect(throws: MoultError.self) { try connection.rows("SELECT ?, ?", [1]) }
        #expect(try connection.rows("SELECT count(*) FROM note") == [[.integer(Int64(values.count))]])
        let error = #expect(throws: MoultError.self) { try connection.rows("SELECT CAST(x'ff' AS TEXT) AS name") }
        #expect(error?.now?.description == "Read the bytes with CAST(name AS BLOB).")
        try connection.executeScript("DELETE FROM note; INSERT INTO note VALUES (1), (2)")
        #expect(try connection.rows("SELECT value FROM note") == [[1], [2]])
        try connection.close()
    }

    /// The connection is opened as by a GRDB pool, which sets the journal mode of all attached files.
    @Test(arguments: ["store", "a b", "100%25", "what?x=1#y", "ä'\"é"])
    func `read-only databases that are attached by their URIs do not change`(_ name: String) async throws {
        let store = Store(at: scratch.path(name))
        try await store.update(to: first)
        let lease = try store.lease()
        let databases = try lease.attachments
        #expect(databases.map(\.schema) == ["main", "food"])
        #expect(databases.map(\.isReadOnly) == [false, true])
        #expect(try databases.map(\.path) == [store.path(of: "notes"), lease.path(of: "food")])
        let before = try databases.map { try Files.read($0.path, limit: 1 << 20) }
        let program = """
            import sqlite3, sys
            db = sqlite3.connect(sys.argv[1], uri=True)
            db.execute("ATTACH ? AS food", [sys.argv[2]])
            db.execute("PRAGMA journal_mode = WAL")
            print(*db.execute("SELECT release FROM food.food").fetchone())
            try: db.execute("DELETE FROM food.food"); print("deleted")
            except sqlite3.OperationalError as error: print(error)
            db.execute("INSERT INTO note VALUES (1)"); db.commit()
            """
        let ended = try Shell.run(["python3", "-c", program] + databases.map(\.uri))
        #expect(ended.output == "1\nattempt to write a readonly database\n", "\(ended)")
        #expect(try Files.read(databases[1].path, limit: 1 << 20) == before[1])
        #expect(try Files.read(databases[0].path, limit: 1 << 20) != before[0])
        let connection = try store.connect()
        #expect(try connection.rows("SELECT count(*) FROM note") == [[1]])
        try connection.close()
    }

    /// Counts its notifications.
    private final class Counting: DatabaseConsumer {
        let reloads = Atomic(0)
        func release(_ change: DatabaseChange) {}
        func reload(_ change: DatabaseChange) { reloads.add(1, ordering: .relaxed) }
    }

    @Test func `a consumer is notified of updates through a different Store for the same directory`() async throws {
        try await store.update(to: first)
        try Files.symlink(to: scratch.path("store"), at: scratch.path("link"))
        let consumer = Counting()
        let registration = store.register(consumer, timeout: .seconds(5))
        try await Store(at: scratch.path("store")).update(to: Self.make(maker, 2))
        #expect(consumer.reloads.load(ordering: .relaxed) == 1)
        try await Store(at: scratch.path("link")).update(to: Self.make(maker, 3))
        #expect(consumer.reloads.load(ordering: .relaxed) == 2)
        registration.cancel()
        try await store.update(to: Self.make(maker, 4))
        #expect(consumer.reloads.load(ordering: .relaxed) == 2)
        let elsewhere = Store(at: scratch.path("elsewhere"))
        try await elsewhere.update(to: first)
        #expect(consumer.reloads.load(ordering: .relaxed) == 2)
    }

    @Test func `an app can roll back and remove the hold without the command`() async throws {
        let second = try Self.make(maker, 2)
        try await store.update(to: first)
        try await store.update(to: second)
        try await store.rollback(reason: "too slow")
        let status = try store.status()
        #expect(status.version == "1.0.0" && status.product == "org.example.test")
        #expect(status.holds.map(\.release) == ["2.0.0"] && status.holds.map(\.reason) == ["too slow"])
        #expect(status.kept.count == 1 && status.databases.map(\.name).sorted() == ["food", "notes"])
        #expect(status.databases.allSatisfy { $0.finding == nil && ($0.size ?? 0) > 0 })
        let refused = await #expect(throws: MoultError.self) { try await store.update(to: second) }
        #expect(refused?.now?.description == #"Remove the hold with: Store.unhold("2.0.0")"#)
        try store.unhold("2.0.0")
        #expect(try await store.update(to: second).isInstalled)
        try store.hold(">=3", reason: "wait")
        #expect(try store.status().holds.map(\.release) == [">=3"])
        #expect(throws: MoultError.self) { try store.hold("nonsense", reason: "") }
        try scratch.must("sed -i 's/\"keep\"/\"minimumAge\": 0, &/' store/moult.json")
        #expect(try await store.clean(keep: 1).count == 1)
        #expect(try store.status().kept == [])
        let history = try store.history()
        #expect(Array(history.map(\.action).suffix(3)) == ["rollback", "update", "update"])
        let unfinished = history.filter { !$0.isDone }
        #expect(unfinished.isEmpty)
        #expect(try store.history(1).count == 1)
    }

    @Test func `an app finds and repairs damage`() async throws {
        try await store.update(to: first)
        #expect(try await store.verify(deep: true).isEmpty)
        try Shell.must(["sqlite3", store.path(of: "notes"), "INSERT INTO note VALUES('mine')"])
        try scratch.must("printf damage | dd of=store/notes.db conv=notrunc bs=1 seek=0 status=none")
        #expect(try await store.verify().contains { $0.database == "notes" && $0.severity == .critical })
        #expect(try store.status().databases.contains { $0.name == "notes" && $0.finding != nil })
        let error = #expect(throws: MoultError.self) { try store.connect() }
        #expect(error?.code == .willNotLoad)
        #expect(error?.now?.description.contains("moult") == false, "\(error?.now?.description ?? "")")
        try store.reset("notes", settingUserDataAside: true)
        #expect(try await store.verify(deep: true).isEmpty)
        let set = try #require(try store.quarantine().first)
        #expect(set.database == "notes" && set.size > 0 && set.directory.hasPrefix(scratch.path("store")))
        try scratch.must("rm store/.moult/current")
        #expect(throws: MoultError.self) { try store.status() }
        try await store.recover()
        #expect(try store.status().version == "1.0.0")
    }

    @Test func `an error says that the app itself has locked a database`() async throws {
        try await store.update(to: first)
        try scratch.must("sed -i '0,/{/s//{ \"waitForApps\": 0,/' store/moult.json")
        let connection = try store.connect()
        try connection.execute("BEGIN IMMEDIATE")
        try connection.execute("INSERT INTO note VALUES('mine')")
        let own = #expect(throws: MoultError.self) { try store.reset("notes", settingUserDataAside: true) }
        #expect(own?.code == .inUse, "\(String(describing: own))")
        #expect(own?.why?.contains("a connection of this one has locked it") == true)
        #expect(own?.now?.description == "End the transactions and statements of this process, and try again.")
    }

    @Test func `an error names the program that has locked a database with its pid`() async throws {
        try await store.update(to: first)
        try scratch.must("sed -i '0,/{/s//{ \"waitForApps\": 0,/' store/moult.json")
        let other = try Program.python(
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None); d.execute('BEGIN IMMEDIATE'); "
                + "print('locked', flush=True); sys.stdin.read()", store.path(of: "notes"))
        #expect(other.line() == "locked")
        let foreign = #expect(throws: MoultError.self) { try store.reset("notes", settingUserDataAside: true) }
        #expect(foreign?.why?.contains("pid \(other.pid) ") == true, "\(String(describing: foreign))")
    }

    @Test func `what an app prints is readable`() async throws {
        try await store.update(to: first)
        let plan = try store.plan(Self.make(maker, 2))
        let lines = plan.effects.map { "\($0)" }
        #expect(lines.contains { $0.hasPrefix("copy ") } && lines.allSatisfy { !$0.contains("Effect(") }, "\(lines)")
        #expect(try store.history(1).first.map { "\($0)" }?.hasSuffix(": done") == true)
        let missing = await #expect(throws: MoultError.self) { try await store.update(to: scratch.path("none.json")) }
        #expect(missing?.code == .notThere)
    }

    @Test func `errors of leases and events suggest functions of the library`() async throws {
        try await store.update(to: first)
        let lease = try store.lease()
        try scratch.must("ln -sfn /etc store/.moult/current")
        let advice = "Restore it with: Store.recover(undo:)"
        #expect(#expect(throws: MoultError.self) { try lease.isOutdated() }?.now?.description == advice)
        var events = store.events.makeAsyncIterator()
        let failed = await #expect(throws: MoultError.self) { try await events.next() }
        #expect(failed?.now?.description == advice)
        var others = Store(at: scratch.path("nothing")).events.makeAsyncIterator()
        let missing = await #expect(throws: MoultError.self) { try await others.next() }
        #expect(missing?.now?.description == "Create one with: Store.update(to:follow:)")
    }
}
