import Moult
import MoultBasics
import MoultFiles
import MoultSQLite
import TestSupport
import Testing

/// Hazard 9: SQLite's backup into a file that other processes have open works only under some conditions, and leaves a
/// large WAL.
@Suite struct Hazard09BackupIntoLive {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    private static let wal = "PRAGMA journal_mode=WAL;"

    /// Pages of a different size cannot be written to a WAL, and a reader in rollback mode blocks the backup.
    @Test func `without moult, a backup into an open file can fail or block`() throws {
        let new = lab.scratch.path("new.db")
        try Shell.must(["sqlite3", new], input: "PRAGMA page_size=8192;" + Lab.notes(3, "new"))
        try Shell.must(["sqlite3", path], input: Self.wal + Lab.notes(5, "old"))
        func copy() throws {
            let source = try Connection(path: new, access: .readWrite)
            let live = try Connection(path: path, access: .readWrite, busyTimeout: 0)
            try source.backup(to: live)
        }
        #expect(throws: MoultError.self) { try copy() }
        try Shell.must(["sqlite3", path, "PRAGMA journal_mode=DELETE; PRAGMA page_size=8192; VACUUM"])
        let reader = try RunningApp(path)
        try reader.begin("SELECT text FROM note")
        #expect(throws: MoultError.self) { try copy() }
        #expect(try reader.rest() == "4|old\n")
    }

    /// SQLite cannot change the page size of a file in WAL mode, so the staged file gets the page size of the file.
    @Test func `a release with another page size is installed in WAL mode, and the file keeps its page size`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 5, "old"))
        let app = try RunningApp(path, Self.wal)
        try app.run("INSERT INTO note VALUES(9000, 'mine', 1)")
        let more: [JSON.Member] = [.init("preserve", [["table": "note", "where": "mine = 1"]])]
        let next = try lab.maker.make(
            "2.0.0", sequence: 2, [.shared("note", "PRAGMA page_size=8192;" + Lab.notes(3, "new"), more: more)])
        try lab.store.updateBlocking(to: next)
        #expect(try app.run("SELECT count(*), min(text), max(text) FROM note") == "4|mine|new\n")
        #expect(
            try ["page_size", "journal_mode", "integrity_check"].map { try app.run("PRAGMA \($0)") } == [
                "4096\n", "wal\n", "ok\n",
            ])
        try app.close()
    }

    /// A connection keeps the text encoding of the first schema that it read. A process in another container may have the file
    /// open, so the encoding never changes.
    @Test(arguments: ["wal", "delete"])
    func `a plan and an update refuse another text encoding`(mode: String) throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 5, "old"))
        try RunningApp(path, "PRAGMA journal_mode=\(mode);").close()
        let more: [JSON.Member] = [
            .init("preserve", [["table": "note", "where": "mine = 1"]]), .init("identity", ["encoding": "UTF-16le"]),
        ]
        let next = try lab.maker.make(
            "2.0.0", sequence: 2,
            [.shared("note", "PRAGMA encoding = 'UTF-16le';" + Lab.notes(3, "new"), more: more)])
        let before = try Tree(lab.store.directory)
        let planned = #expect(throws: MoultError.self) { _ = try lab.store.plan(next) }
        #expect(try Tree(lab.store.directory) == before)
        let error = #expect(throws: MoultError.self) { try lab.store.updateBlocking(to: next) }
        for error in [planned, error] {
            #expect(error?.outcome == .refused)
            #expect(
                error?.why?.contains("the text encoding of the file is UTF-8, that of the release is UTF-16le") == true)
        }
        #expect(try Lab.read(path) == "5|old|old\n")
    }

    /// Until the first checkpoint, the header of a new database in WAL mode has no text encoding.
    @Test func `an update refuses another text encoding while all content is in the -wal`() throws {
        let app = try RunningApp(path, Self.wal + Lab.notes(5, "old"))
        #expect(try Connection.encoding(ofFileAt: path) == nil)
        let next = try lab.maker.make(
            "1.0.0", sequence: 1, [.shared("note", "PRAGMA encoding = 'UTF-16le';" + Lab.notes(3, "new"), more: [])])
        let before = try ["", "-wal"].map { try Files.read(path + $0, limit: 1 << 20) }
        let error = #expect(throws: MoultError.self) { try lab.store.updateBlocking(to: next) }
        #expect(
            error?.outcome == .refused && error?.why?.contains("the file is UTF-8") == true,
            "\(String(describing: error))")
        #expect(try ["", "-wal"].map { try Files.read(path + $0, limit: 1 << 20) } == before)
        #expect(try app.run("SELECT count(*), min(text), max(text) FROM note") == "5|old|old\n")
        try app.close()
    }

    /// Waits until an update has staged its files and opened the database. From then on, the update only waits for the
    /// lock.
    private func waitForBlocked(_ update: Program) throws {
        let transactions = lab.path(".moult/transactions")
        func isStaged() throws -> Bool {
            try Files.list(transactions).contains { try Files.facts("\(transactions)/\($0)/waiting/note.db") != nil }
        }
        while try !isStaged() || !OpenFiles.isOpen([path], in: update.pid) { try #require(update.isRunning) }
    }

    /// A writer is in the middle of a transaction when the update starts to wait; neither of them blocks the other
    /// forever.
    @Test(arguments: ["wal", "delete"])
    func `an update waits for a writer`(mode: String) throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 5, "old"))
        let writer = try RunningApp(path, "PRAGMA journal_mode=\(mode);")
        try writer.run("BEGIN IMMEDIATE")
        try writer.run("INSERT INTO note VALUES(9000, 'mine', 1)")
        let update = try Program([
            BuiltMoult.path(), "apply", "--store", lab.store.directory, lab.shared("2.0.0", 2, 3, "new"),
        ])
        try waitForBlocked(update)
        #expect(try writer.run("COMMIT") == "")
        #expect(update.wait() == 0)
        #expect(try writer.run("SELECT count(*), min(text), max(text) FROM note") == "4|mine|new\n")
        try writer.close()
    }

    /// In rollback mode, a reader blocks the new content, so the update waits until the reader has finished.
    @Test func `an update waits for a reader in rollback mode`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 5, "old"))
        let reader = try RunningApp(path)
        try reader.begin("SELECT text FROM note")
        let update = try Program([
            BuiltMoult.path(), "apply", "--store", lab.store.directory, lab.shared("2.0.0", 2, 3, "new"),
        ])
        try waitForBlocked(update)
        #expect(try reader.rest() == "4|old\n")
        #expect(update.wait() == 0)
        #expect(try reader.run("SELECT count(*), min(text), max(text) FROM note") == "3|new|new\n")
        try reader.close()
    }

    /// At every moment, at least one reader is reading, but the update still gets its turn.
    @Test func `an update gets its turn among overlapping readers`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 5, "old"))
        let readers = try (1...5).map { _ in
            try Program.python(
                """
                import select, sqlite3, sys, time
                c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
                said = False
                while not select.select([sys.stdin], [], [], 0)[0]:
                    c.execute("BEGIN"); c.execute("SELECT count(*) FROM note").fetchone(); time.sleep(0.06); c.execute("COMMIT")
                    if not said: said = True; print("ready")
                """, path)
        }
        for reader in readers { #expect(reader.line() == "ready") }
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        for reader in readers {
            reader.closeInput()
            #expect(reader.wait() == 0)
        }
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    /// A slow reader has an old snapshot. The update waits for the reader, but writers do not have to wait as well.
    @Test func `an update does not make writers wait for a slow reader`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 20_000, "old"))
        let reader = try RunningApp(path, Self.wal + "PRAGMA cache_size=1;")
        let writer = try RunningApp(path)
        try reader.begin("SELECT text FROM note")
        let update = try Program([
            BuiltMoult.path(), "apply", "--store", lab.store.directory, lab.shared("2.0.0", 2, 3, "new"),
        ])
        while try writer.run("SELECT max(text) FROM note") != "new\n" {
            try #require(update.isRunning)
        }
        // The writer has a busy timeout of five seconds.
        #expect(try writer.run("INSERT INTO note VALUES(9000, 'mine', 1)") == "")
        #expect(update.wait() == 0)
        #expect(try reader.rest() == "19999|old\n")
        try reader.close()
        try writer.close()
        #expect(try Lab.read(path) == "4|mine|new\n")
    }

    /// `PRAGMA data_version` shows the reader that newer content exists.
    @Test func `a reader in WAL mode keeps its snapshot and can detect the update`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 20_000, "old"))
        let reader = try RunningApp(path, Self.wal + "PRAGMA cache_size=1;")
        let version = try reader.run("PRAGMA data_version")
        try reader.begin("SELECT text FROM note")
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        #expect(try reader.rest() == "19999|old\n")
        #expect(try reader.run("PRAGMA data_version") != version)
        #expect(try reader.run("SELECT count(*) FROM note") == "3\n")
        try reader.close()
    }

    /// The content of the release is already in the file, so the next small commit of the app does not have to copy it from the
    /// WAL.
    @Test func `the WAL is small after a live replacement`() throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 20_000, "old"))
        let app = try RunningApp(path, Self.wal)
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 20_000, "new"))
        #expect(try Files.facts("\(path)-wal")?.size == 0)
        #expect(try app.run("SELECT count(*), max(text) FROM note") == "20000|new\n")
        try app.close()
    }

    /// The command is killed in the middle of the copy, before the decision: every reader has the old content.
    @Test(arguments: ["wal", "delete"])
    func `a crash while pages are copied leaves the old content`(mode: String) throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, 20_000, "old"))
        let app = try RunningApp(path, "PRAGMA journal_mode=\(mode);")
        try app.run("INSERT INTO note VALUES(90000, 'mine', 1)")
        // The release has so many pages that the command is killed while it writes the replacement.
        let ended = try Shell.run([
            "strace", "-f", "-qq", "-o", "/dev/null", "-P", mode == "wal" ? "\(path)-wal" : path, "-e",
            "trace=pwrite64", "-e", "inject=pwrite64:signal=SIGKILL:when=20", BuiltMoult.path(), "apply", "--store",
            lab.store.directory, lab.shared("2.0.0", 2, 20_000, "new"),
        ])
        try #require(ended.status != 0)
        #expect(try app.run("SELECT count(*), min(text), max(text) FROM note") == "20001|mine|old\n")
        #expect(try Orchestrator(root: lab.store.directory, steps: .builtIn).recover().map(\.ending) == [.cleaned])
        #expect(try app.run("SELECT count(*), min(text), max(text) FROM note") == "20001|mine|old\n")
        try lab.store.updateBlocking(to: lab.shared("3.0.0", 3, 20_000, "new"))
        #expect(try app.run("SELECT count(*), min(text), max(text) FROM note") == "20001|mine|new\n")
        #expect(try Lab.isSound(path))
        try app.close()
    }
}
