import MoultBasics
import MoultFiles
import TestSupport
import Testing

@testable import MoultRows
@testable import MoultSQLite

/// The exit status of each verb for a store with a damaged database matches `moult help exit-codes`.
@Suite(.tags(.thorough, .slow)) struct ExitStatusTests {
    let scratch: Scratch
    var path: String { scratch.path("store") }

    /// Creates a store with a read-only, a shared and two user databases; the app has written to the latter three. The second
    /// release changes the content of `app` and migrates `diary`.
    init() throws {
        scratch = try Scratch()
        let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE INDEX ix ON t(x); PRAGMA user_version = "
        for (name, sql) in [
            ("app1", table + "1;"), ("app2", table + "1; INSERT INTO t VALUES(1, 'new');"), ("diary1", table + "1;"),
            ("diary2", table + "2; ALTER TABLE t ADD COLUMN y;"), ("plain1", table + "1;"), ("plain2", table + "1;"),
            ("food1", table + "1;"), ("food2", table + "1;"),
            ("0002", "ALTER TABLE t ADD COLUMN y; PRAGMA user_version = 2;"),
        ] { try Files.writeNew(Array(sql.utf8), to: scratch.path("\(name).sql")) }
        for number in 1...2 {
            func build(_ name: String) -> JSON { ["script": .string("\(name)\(number).sql")] }
            let draft: JSON = [
                "manifest": 1, "product": "local.exits", "version": .string("\(number).0.0"), "sequence": .size(number),
                "databases": [
                    "food": ["kind": "reference", "build": build("food")],
                    "app": [
                        "kind": "shared", "build": build("app"), "preserve": [["table": "t", "where": "id > 1"]],
                    ],
                    "diary": .compact([
                        "kind": "user", "build": build("diary"), "migrations": number == 2 ? ["0002.sql"] : nil,
                    ]),
                    "plain": ["kind": "user", "build": build("plain")],
                ],
            ]
            try Files.writeNew(Array(draft.pretty.utf8), to: scratch.path("\(number).json"))
            try Shell.must(
                [BuiltMoult.path(), "pack", "-q", "--allow-dirty", "\(number).json", "-o", "."], in: scratch.path)
        }
        try Shell.must([BuiltMoult.path(), "init", "-q", path, "--product", "local.exits"])
        try #require(try moult("apply", "-q", manifest(1)).status == 0)
        for name in ["app", "diary", "plain"] {
            try Shell.must([
                "sqlite3", "\(path)/\(name).db",
                "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO t(id, x) SELECT i, hex(zeroblob(30)) || i FROM n",
            ])
        }
    }

    private func manifest(_ number: Int) -> String { scratch.path("exits-\(number).0.0.json") }

    private func moult(_ words: String...) throws -> Shell.Ended {
        try Shell.run([BuiltMoult.path()] + words + ["--store", path])
    }

    enum Damage: String, CaseIterable {
        case text = "echo 'this is not a database' > $DB"
        case empty = ": > $DB"
        case header = "dd if=/dev/zero of=$DB bs=1 count=100 conv=notrunc status=none"
        case schema = "dd if=/dev/zero of=$DB bs=1 seek=100 count=3000 conv=notrunc status=none"
        case pages = "dd if=/dev/urandom of=$DB bs=4096 seek=5 count=9 conv=notrunc status=none"
        case short = "truncate -s 40000 $DB"
        case missing = "rm $DB"
    }

    /// A refused command exits with 3, and `verify` with 1. Damage to a database that a verb does not need does not
    /// stop the verb.
    @Test(arguments: ["app", "diary", "plain"], Damage.allCases)
    func `a command that needs a damaged writable database is refused, and verify fails`(
        _ name: String, _ damage: Damage
    ) throws {
        try Shell.must(["sh", "-ec", "DB=\(name).db; \(damage.rawValue)"], in: path)
        let before = damage == .missing ? nil : try Files.read("\(path)/\(name).db", limit: 1 << 24)
        for words in [["plan", manifest(2)], ["plan", "--deep", manifest(2)]] {
            let ended = try Shell.run([BuiltMoult.path()] + words + ["--store", path])
            #expect([2, 3].contains(ended.status), "\(words): \(ended)")
            if ended.status == 3 { #expect(ended.errors.contains("moult "), "\(words): \(ended.errors)") }
        }
        let reset = try moult("reset", name)
        #expect(reset.status == 3, "\(reset)")
        let verify = try moult("verify", "--deep")
        #expect(verify.status == 1, "\(verify)")
        let again = try moult("apply", manifest(1))
        #expect([0, 3].contains(again.status), "\(again)")
        if again.status == 3, let before {
            #expect(try Files.read("\(path)/\(name).db", limit: 1 << 24) == before)
        }
        let update = try moult("apply", manifest(2))
        #expect([0, 3].contains(update.status), "\(update)")
        if update.status == 0 {
            let rollback = try moult("rollback", "--dry-run")
            #expect([2, 3].contains(rollback.status), "\(rollback)")
        }
        #expect(try moult("reset", name, "--set-user-data-aside").status == 0)
        #expect(try moult("verify").status == 0)
    }

    @Test(arguments: Damage.allCases)
    func `damage to a read-only database is repaired by an update, and a rollback to it is refused`(_ damage: Damage)
        throws
    {
        let generation = try Files.resolved("\(path)/.moult/current")
        try #require(try moult("apply", "-q", manifest(2)).status == 0)
        try Shell.must(["sh", "-ec", "chmod u+w . food.db; DB=food.db; \(damage.rawValue)"], in: generation)
        let rollback = try moult("rollback")
        #expect(rollback.status == 3, "\(rollback)")
    }

    /// SQLITE_READONLY with an extended code is caused by another process; without one, the database cannot be written
    /// to.
    @Test(arguments: [
        (8, 1), (264, 75), (520, 75), (776, 75), (1032, 75), (1288, 75), (1544, 1), (5, 75), (261, 75), (517, 75),
        (6, 75), (15, 75), (11, 1), (26, 1), (13, 1), (10, 1),
    ])
    func `temporary SQLite errors exit with 75`(_ code: Int, _ status: Int) {
        let error = SQLiteError(resultCode: ResultCode(Int32(code)), message: "x", sql: nil, path: "/x.db")
        #expect(Int(MoultError(error, doing: "read").outcome.rawValue) == status)
    }

    /// The header of the shared memory is zero, as while a writer recovers the WAL.
    @Test func `a command exits with 75 if a writer is recovering a database`() throws {
        let ready = scratch.path("ready")
        let app = try Background([
            "python3", "-c",
            """
            import signal, sqlite3, subprocess, sys
            connection = sqlite3.connect(sys.argv[1], isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("INSERT INTO t(x) VALUES('wal')")
            connection.execute("BEGIN IMMEDIATE")
            # In another process: closing the file here would drop the locks of this one.
            subprocess.run(["dd", "if=/dev/zero", "of=" + sys.argv[1] + "-shm", "bs=96", "count=1", "conv=notrunc", "status=none"], check=True)
            open(sys.argv[2], "w").close()
            signal.pause()
            """, "\(path)/app.db", ready,
        ])
        try app.wait { try Files.facts(ready) != nil }
        let busy = try moult("apply", manifest(2))
        #expect(busy.status == 75, "\(busy)")
        app.stop()
        #expect(try moult("apply", manifest(2)).status == 0)
    }
}
