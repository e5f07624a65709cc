import Moult
import MoultBasics
import MoultFiles
import MoultSQLite
import StepKit
import TestSupport
import Testing

/// The disk of a writable database fails once, at every third SQLite call of each kind on each of its files. (`make
/// proof` does this at every call of the whole update.)
@Suite(.tags(.thorough, .slow), .serialized) struct DiskErrorTests {
    static let calls = ["pwrite64", "fdatasync", "fsync", "ftruncate", "unlink"]
    static let files = ["pantry.db", "pantry.db-wal", "pantry.db-journal"]

    /// How the second release changes the writable database.
    enum Way: String, CaseIterable { case rewrite, migration }

    private static func release(_ maker: ReleaseMaker, _ number: Int, _ way: Way) throws -> String {
        let food = """
            CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT, mine INTEGER NOT NULL DEFAULT 0);
            INSERT INTO food(id, name) VALUES(1, 'egg \(number)');
            """
        let codes = ReleaseMaker.Source.reference(
            "codes", "CREATE TABLE codes(release); INSERT INTO codes VALUES(\(number));")
        guard way == .migration else {
            let more: [JSON.Member] = [
                .init("preserve", [["table": "food", "where": "mine = 1"]])
            ]
            return try maker.make("\(number).0.0", sequence: number, [.shared("pantry", food, more: more), codes])
        }
        let migrate = "UPDATE food SET name = 'egg 2' WHERE id = 1; PRAGMA user_version = 2;"
        let user = ReleaseMaker.Source.user(
            "pantry", "\(food) PRAGMA user_version = \(number);", migrations: number == 1 ? [:] : ["m/2.sql": migrate])
        return try maker.make("\(number).0.0", sequence: number, [user, codes])
    }

    /// Returns what apps find in the databases.
    private static func state(_ store: String, _ way: Way) throws -> [String] {
        let version = way == .migration ? "PRAGMA user_version" : "SELECT CAST(release AS INTEGER) FROM moult_release"
        let pantry = "SELECT group_concat(name) FROM food; \(version); PRAGMA journal_mode"
        return try [
            Shell.must(["sqlite3", "file:\(store)/codes.db?immutable=1", "SELECT release FROM codes"]),
            Shell.must(["sqlite3", "\(store)/pantry.db", pantry]),
        ]
    }

    /// Writes a row as an app does. In WAL mode, the app is then killed, so that the row is only in the `-wal`.
    private static func write(to store: String, _ mode: String) throws {
        try Shell.must([
            "sqlite3", "\(store)/pantry.db", ".dbconfig no_ckpt_on_close on",
            "PRAGMA journal_mode = \(mode); INSERT INTO food VALUES(100, 'mine', 1)",
        ])
        #expect(try (Files.facts("\(store)/pantry.db-wal") != nil) == (mode == "wal"))
    }

    @Test(arguments: Way.allCases, ["delete", "wal"])
    func `a disk error during an update loses no row`(way: Way, mode: String) throws {
        let releases = try Scratch()
        let maker = try ReleaseMaker(in: releases.path)
        let (first, second) = try (Self.release(maker, 1, way), Self.release(maker, 2, way))
        let old = ["1\n", "egg 1,mine\n1\n\(mode)\n"]
        let new = ["2\n", "egg 2,mine\n2\n\(mode)\n"]
        let moult = try BuiltMoult.path()
        var statuses: [Int32: Int] = [:]
        for (file, call) in Self.files.flatMap({ file in Self.calls.map { (file, $0) } }) {
            for number in stride(from: 1, to: .max, by: 3) {
                let scratch = try Scratch()
                let store = scratch.path("store")
                try Store(at: store).updateBlocking(to: first)
                try Self.write(to: store, mode)
                let log = scratch.path("log")
                let ended = try Shell.run([
                    "strace", "-f", "-qq", "-o", log, "-P", "\(store)/\(file)", "-e", "trace=\(call)", "-e",
                    "inject=\(call):error=EIO:when=\(number)", moult, "apply", "--store", store, second,
                ])
                let struck = String(decoding: try Files.read(log, limit: 1 << 24) ?? [], as: UTF8.self)
                if !struck.contains("(INJECTED)") { break }
                statuses[ended.status, default: 0] += 1
                let note = Comment("\(call) \(number) on \(file): \(ended.status) \(ended.errors)")
                let orchestrator = try Orchestrator(root: store, steps: .builtIn)
                // If the command leaves nothing unfinished, its status is correct at once; otherwise it is correct
                // after recovery.
                let endings = try orchestrator.recover().map(\.ending)
                let settled = try Self.state(store, way)
                switch ended.status {
                case 0: #expect(settled == new, note)
                case 6:
                    #expect(settled == old || settled == new, note)
                    // If a recovery failed and a later one succeeded, the history says so.
                    let last = try History.read(orchestrator.layout).entries.last?.outcome
                    #expect(last == (endings == [.finished] ? .finished : .undone), note)
                default:
                    #expect(settled == old, note)
                    #expect(!endings.contains(.finished), note)
                }
                // No journal is left that would block the next connection.
                #expect(try !Sidecars.of("\(store)/pantry.db").hasHotJournal(), note)
                _ = try orchestrator.update(ReleaseFile(second))
                #expect(try Self.state(store, way) == new, note)
            }
        }
        #expect(statuses.values.reduce(0, +) >= 6, "\(statuses)")
        #expect(statuses.keys.contains { $0 != 0 }, "\(statuses)")
    }

    @Test(arguments: [Way.rewrite, .migration])
    func `an update is finished later if a commit failed while an app was reading the -wal`(way: Way) throws {
        let scratch = try Scratch()
        let maker = try ReleaseMaker(in: scratch.path("releases"))
        let store = scratch.path("store")
        try Store(at: store).updateBlocking(to: Self.release(maker, 1, way))
        try Self.write(to: store, "wal")
        try Settings.rewrite(StoreLayout(root: store), "waitForApps", 1)
        let app = try Connection(path: "\(store)/pantry.db", access: .readWrite)
        try app.execute("BEGIN; SELECT count(*) FROM food")
        let ended = try Shell.run([
            "strace", "-f", "-qq", "-o", "/dev/null", "-P", "\(store)/pantry.db-wal", "-e", "trace=fdatasync", "-e",
            "inject=fdatasync:error=EIO:when=1", BuiltMoult.path(), "apply", "--store", store,
            Self.release(maker, 2, way),
        ])
        #expect(ended.status == 6, "\(ended.errors)")
        #expect(ended.errors.contains("can no longer be undone"))
        #expect(ended.errors.contains("moult recover"))
        try app.execute("COMMIT")
        try app.close()
        #expect(try Orchestrator(root: store, steps: .builtIn).recover().map(\.ending) == [.finished])
        #expect(try Self.state(store, way) == ["2\n", "egg 2,mine\n2\nwal\n"])
    }
}
