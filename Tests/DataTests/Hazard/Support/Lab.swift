import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A store, its releases, and apps that use its databases as real apps do.
struct Lab {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: try scratch.directory("store"))
    }

    /// Returns a path in the store.
    func path(_ name: String) -> String { scratch.path("store/\(name)") }

    /// Returns the path of a file in the only set in quarantine.
    func keptFile(_ name: String) throws -> String {
        let sets = try Files.list(path(".moult/quarantine")).filter { !$0.hasPrefix(".") && !$0.hasSuffix(".TAG") }
        try #require(sets.count == 1, "\(sets)")
        return path(".moult/quarantine/\(sets[0])/\(name)")
    }

    /// Returns SQL for a table of notes with this many rows of the same text.
    static func notes(_ count: Int, _ text: String) -> String {
        """
        CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL, mine INTEGER NOT NULL DEFAULT 0);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
        INSERT INTO note(text) SELECT '\(text)' FROM n WHERE \(count) > 0;
        """
    }

    /// Returns the number of rows in the database at a path, and the first and last text.
    static func read(_ path: String) throws -> String {
        try Shell.must(["sqlite3", path, "SELECT count(*), min(text), max(text) FROM note"])
    }

    static func isSound(_ path: String) throws -> Bool {
        try Shell.must(["sqlite3", path, "PRAGMA integrity_check"]) == "ok\n"
    }

    static let sidecars = ["-wal", "-shm", "-journal"]

    /// Returns the files next to a database that SQLite would treat as parts of it.
    static func sidecars(of path: String) throws -> [String] {
        try sidecars.filter { try Files.facts(path + $0) != nil }
    }

    // MARK: apps

    /// Runs an app that commits 500 rows and is killed, so that the rows are only in the WAL.
    static func killedWithRowsInTheWAL(_ path: String, text: String = "old", mine: Bool = false) throws {
        try python(
            """
            c.execute("pragma journal_mode=wal")
            c.execute("pragma wal_autocheckpoint=0")
            \(makeNotes)
            c.execute("begin")
            c.execute("delete from note")
            c.executemany("insert into note(text, mine) values(?, ?)", [(sys.argv[2], int(sys.argv[3]))] * 500)
            c.execute("commit")
            os._exit(0)
            """, path, text, mine ? "1" : "0")
    }

    /// Runs an app that is killed in the middle of a transaction: half of the transaction is in the file, with a hot
    /// journal that rolls it back.
    static func killedInATransaction(_ path: String) throws {
        try python(
            """
            \(makeNotes)
            c.execute("pragma cache_size=1")
            c.execute("begin immediate")
            c.execute("update note set text = 'torn' || hex(zeroblob(300))")
            os._exit(0)
            """, path)
    }

    private static let makeNotes =
        "c.execute(\"create table if not exists note(id integer primary key, text text not null, mine integer not null default 0)\")"

    private static func python(_ body: String, _ path: String, _ more: String...) throws {
        try Shell.must(
            [
                "python3", "-c",
                "import os, sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n\(body)",
                path,
            ] + more)
    }
}
