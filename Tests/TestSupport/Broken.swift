import MoultFiles

/// Ways to break a database so that it does not load. Each is a shell command that runs in the directory of the database, with
/// the name of the file in `DB`. A killed process has left `other.db-wal` and `other.db-journal` of another database there.
package enum Broken: String, CaseIterable, Sendable {
    case noDatabase = "echo 'this is not a database at all' > $DB"
    case zeroBytes = ": > $DB"
    case oneByte = "printf x > $DB"
    case tornHeader = "dd if=/dev/zero of=$DB bs=1 count=100 conv=notrunc status=none"
    case damagedSchema = "dd if=/dev/zero of=$DB bs=1 seek=100 count=3000 conv=notrunc status=none"
    case directory = "rm $DB && mkdir $DB && echo x > $DB/file"
    case linkToNowhere = "rm $DB && ln -s /nonexistent/x.db $DB"
    case onlyAWAL = "cp other.db-wal $DB-wal && rm $DB"
    case foreignWAL = "cp other.db-wal $DB-wal"
    case foreignJournal = "cp other.db-journal $DB-journal"
    case missing = "rm $DB"

    /// Whether salvage can still read rows.
    package var isReadable: Bool {
        switch self {
        case .tornHeader, .foreignWAL, .foreignJournal: true
        default: false
        }
    }

    package func make(_ name: String, in directory: String) throws {
        try Shell.must(
            [
                "python3", "-c",
                """
                import os, sqlite3
                def left(mode, name):
                    if os.fork() == 0:
                        c = sqlite3.connect(name, isolation_level=None)
                        c.execute("pragma journal_mode=" + mode)
                        c.execute("pragma synchronous=off")
                        c.execute("create table other(x)")
                        c.executemany("insert into other values(?)", [("y" * 500,)] * 500)
                        c.execute("pragma cache_size=1")
                        c.execute("begin immediate")
                        c.execute("update other set x = 'z' || x")
                        os._exit(0)
                    os.wait()
                left("wal", "other.db")
                os.rename("other.db-wal", "wal")
                for n in ("other.db", "other.db-shm"): os.remove(n)
                left("delete", "other.db")
                os.rename("wal", "other.db-wal")
                os.remove("other.db")
                """,
            ], in: directory)
        try Shell.must(["sh", "-ec", "DB=\(name); \(rawValue)"], in: directory)
        for left in ["other.db-wal", "other.db-journal", "other.db-shm"] { try Files.remove("\(directory)/\(left)") }
    }
}
