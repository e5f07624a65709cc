import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// `moult cache FILE --schema SCHEMA.sql`, for an app without releases.
@Suite struct CacheVerbTests {
    let scratch: Scratch
    var path: String { scratch.path("thumbs.db") }

    init() throws {
        scratch = try Scratch()
        try Files.writeNew(Array(Self.schema.utf8), to: scratch.path("schema.sql"))
        try Files.writeNew(Array("CREATE TABLE thumb(id INTEGER PRIMARY KEY);\n".utf8), to: scratch.path("old.sql"))
    }

    static let schema = """
        -- Version 2 of the thumbnails.
        CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB);
        CREATE INDEX by_size ON thumb(length(image));

        """

    private func cache(_ words: String..., schema: String = "schema.sql") throws -> Shell.Ended {
        try BuiltMoult.run(["cache", "thumbs.db", "--schema", schema] + words, in: scratch.path)
    }

    private func sqlite(_ sql: String) throws -> String { try Shell.must(["sqlite3", path, sql]) }

    private func names() throws -> [String] { try Files.list(scratch.path).filter { !$0.hasSuffix(".sql") } }

    /// Starts a process that has the database open.
    private func opened(_ sql: String) throws -> Background {
        let app = try Background([
            "python3", "-c",
            """
            import signal, sqlite3, sys
            connection = sqlite3.connect(sys.argv[1], isolation_level=None)
            for statement in sys.argv[2].split(";"): connection.execute(statement).fetchall()
            open(sys.argv[3], "w").close()
            signal.pause()
            """, path, sql, scratch.path("ready.sql"),
        ])
        try app.wait { try Files.facts(scratch.path("ready.sql")) != nil }
        return app
    }

    @Test(arguments: Broken.allCases.filter { ![.directory, .linkToNowhere].contains($0) })
    func `a damaged cache is recreated`(_ broken: Broken) throws {
        _ = try cache()
        _ = try sqlite("INSERT INTO thumb(image) VALUES(x'01')")
        try broken.make("thumbs.db", in: scratch.path)
        #expect(try cache().status == 2)
        #expect(try sqlite("PRAGMA integrity_check; SELECT count(*) FROM thumb") == "ok\n0\n")
        // Another database's -wal may have tables of that database.
        let hasHeader = ![Broken.noDatabase, .oneByte, .tornHeader, .foreignWAL].contains(broken)
        #expect(try names().filter { $0 != ".thumbs.db.moult" } == ["thumbs.db"] + (hasHeader ? [] : ["thumbs.db.old"]))
        #expect(try cache().status == 0)
    }

    /// The app's own database, given by mistake, may even have a table of the cache.
    @Test(arguments: [
        "CREATE TABLE note(x); INSERT INTO note VALUES('precious')",
        "CREATE TABLE thumb(id INTEGER PRIMARY KEY); CREATE TABLE note(x); INSERT INTO note VALUES('precious')",
    ])
    func `a database with other tables than the cache is kept`(sql: String) throws {
        _ = try sqlite(sql)
        let before = try sqlite(".dump")
        let json = try JSON(parsing: cache("--json").output, source: "cache")
        let kept = try #require(json["kept"]?.string)
        #expect(kept == scratch.path(".thumbs.db.moult/0001-unfit-cache/thumbs.db"))
        #expect(try Shell.must(["sqlite3", kept, ".dump"]) == before)
        #expect(try sqlite("SELECT count(*) FROM thumb") == "0\n")
        try BuiltMoult.must(["quarantine", "thumbs.db", "1", "--restore"], in: scratch.path)
        #expect(try sqlite(".dump") == before)
        #expect(try cache().status == 2)
        #expect(try cache().status == 0)
    }

    @Test func `a file that is not a database is kept`() throws {
        let line = "echo text > thumbs.db"
        try Shell.must(["sh", "-ec", line], in: scratch.path)
        let before = try Files.read(path, limit: 1 << 20)
        let json = try JSON(parsing: cache("--json").output, source: "cache")
        #expect(json["kept"]?.string == "\(path).old")
        #expect(try Files.read("\(path).old", limit: 1 << 20) == before)
        #expect(try names() == ["thumbs.db", "thumbs.db.old"])
        #expect(try sqlite("SELECT count(*) FROM thumb") == "0\n")
        try Shell.must(["sh", "-ec", "rm thumbs.db; \(line)"], in: scratch.path)
        #expect(try cache().output.hasSuffix("is kept: \(path).old.2\n"))
        #expect(try cache().status == 0)
    }

    /// The damage is in a page that only `quick_check` reads.
    @Test func `the cache verb finds damage inside a table`() throws {
        _ = try cache()
        _ = try sqlite(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO thumb(image) SELECT zeroblob(50) FROM n"
        )
        try Shell.must(
            ["dd", "if=/dev/urandom", "of=thumbs.db", "bs=4096", "seek=9", "count=2", "conv=notrunc", "status=none"],
            in: scratch.path)
        #expect(try cache().status == 2)
        #expect(try sqlite("SELECT count(*) FROM thumb") == "0\n")
    }

    @Test func `the cache verb keeps the mode and owner of the old file`() throws {
        _ = try cache(schema: "old.sql")
        try Shell.must(["chmod", "640", path])
        if geteuid() == 0 { try Shell.must(["chown", "7:8", path]) }
        let old = try #require(try Files.facts(path))
        #expect(try cache().status == 2)
        let new = try #require(try Files.facts(path))
        #expect((new.mode, new.owner, new.group) == (old.mode, old.owner, old.group))
        #expect(new.inode == old.inode)
    }

    @Test(arguments: ["SELECT 1", "SELECT * FROM thumb", "PRAGMA journal_mode = WAL"])
    func `an open cache is recreated in place`(_ sql: String) throws {
        _ = try cache(schema: "old.sql")
        _ = try sqlite("INSERT INTO thumb VALUES(7)")
        let app = try opened(sql)
        let before = try Files.facts(path)
        #expect(try cache().status == 2)
        #expect(try Files.facts(path)?.inode == before?.inode)
        #expect(try sqlite("SELECT count(image) FROM thumb") == "0\n")
        app.stop()
        #expect(try names() == ["thumbs.db"])
    }

    @Test func `a locked cache is not replaced`() throws {
        _ = try cache(schema: "old.sql")
        _ = try sqlite("INSERT INTO thumb VALUES(7)")
        let app = try opened("BEGIN EXCLUSIVE")
        let before = try Files.facts(path)
        let busy = try cache()
        #expect(busy.status == 75)
        #expect(busy.errors.contains("thumbs.db is in use"), "\(busy.errors)")
        #expect(busy.errors.contains("python3"), "\(busy.errors)")
        #expect(try Files.facts(path) == before)
        #expect(try names().filter { $0.hasPrefix(".") }.isEmpty)
        app.stop()
        #expect(try cache().status == 2)
    }

    @Test func `an open cache whose schema matches is ready`() throws {
        _ = try cache()
        let app = try opened("PRAGMA journal_mode = WAL; INSERT INTO thumb(image) VALUES(x'01')")
        #expect(try cache().status == 0)
        app.stop()
    }

    @Test(arguments: [
        "mkdir thumbs.db", "mkfifo thumbs.db", "sqlite3 other.db.sql 'CREATE TABLE t(x)'; ln -s other.db.sql thumbs.db",
    ])
    func `the cache verb replaces only a regular file`(_ line: String) throws {
        try Shell.must(["sh", "-ec", line], in: scratch.path)
        let refused = try cache()
        #expect(refused.status == 3)
        #expect(refused.errors.hasSuffix("  Move it away: mv thumbs.db thumbs.db.old\n"), "\(refused.errors)")
        #expect(try names() == ["thumbs.db"])
    }

    @Test func `errors in the script of a cache name the file and the statement`() throws {
        try Files.writeNew(Array("CREATE TABLE a(x);\nCREATE TABEL b(x);\n".utf8), to: scratch.path("wrong.sql"))
        _ = try cache(schema: "old.sql")
        let before = try Files.facts(path)
        let wrong = try cache(schema: "wrong.sql")
        #expect(wrong.status == 1)
        #expect(wrong.errors.contains("wrong.sql:2"), "\(wrong.errors)")
        #expect(wrong.errors.contains("TABEL"), "\(wrong.errors)")
        #expect(try cache(schema: "none.sql").errors.contains("none.sql"))
        #expect(try Files.facts(path) == before)
        // As in a build, a script can only read files in its directory.
        try Files.writeNew(Array("ATTACH '/etc/outside.db' AS outside;\n".utf8), to: scratch.path("outside.sql"))
        #expect(try cache(schema: "outside.sql").status != 0)
        #expect(try Files.facts("/etc/outside.db") == nil)
    }

    /// The command is killed at the first calls that write, remove or sync a file. The result is the old file with its rows, or a
    /// complete new file.
    @Test(.tags(.thorough), arguments: ["pwrite64", "unlinkat", "unlink", "fdatasync", "fsync"])
    func `a kill leaves the old cache or the new one intact`(_ call: String) throws {
        var killed = 0
        for (journal, number) in ["WAL", "DELETE"].flatMap({ journal in (1...4).map { (journal, $0) } }) {
            _ = try cache(schema: "old.sql")
            // A process was killed in the middle of a transaction.
            try Shell.must([
                "python3", "-c",
                """
                import os, sqlite3, sys
                if os.fork() == 0:
                    c = sqlite3.connect(sys.argv[1], isolation_level=None)
                    c.execute("pragma journal_mode=" + sys.argv[2])
                    c.execute("insert into thumb select value from json_each('[' || rtrim(replace(hex(zeroblob(2000)), '00', 'null,'), ',') || ']')")
                    c.execute("pragma cache_size=1")
                    c.execute("begin immediate")
                    c.execute("update thumb set id = -id")
                    os._exit(0)
                os.wait()
                """, path, journal,
            ])
            let ended = try Shell.run(
                [
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                    "inject=\(call):signal=SIGKILL:when=\(number)", BuiltMoult.path(), "cache", path, "--schema",
                    scratch.path("schema.sql"),
                ])
            if ended.status != 2 {
                killed += 1
                let columns = try sqlite("SELECT count(*) FROM pragma_table_info('thumb')")
                #expect(["1\n", "2\n"].contains(columns), "\(columns)")
                if columns == "1\n" {
                    #expect(try sqlite("SELECT count(*), min(id) > 0 FROM thumb") == "2000|1\n")
                } else {
                    #expect(try sqlite("PRAGMA integrity_check; SELECT count(*) FROM thumb") == "ok\n0\n")
                }
            }
            #expect([0, 2].contains(try cache().status))
            #expect(try sqlite("PRAGMA integrity_check; SELECT count(image) FROM thumb") == "ok\n0\n")
            #expect(try names() == ["thumbs.db"])
            try Files.remove(path)
        }
        #expect(killed > 0)
    }

    @Test func `a planted link in place of the lock is named at once`() throws {
        let lock = scratch.path(".thumbs.db.moult-lock")
        try Files.symlink(to: "/etc/shadow", at: lock)
        let ended = try cache()
        #expect(ended.status == 3 && ended.errors.contains("\(lock) is a symbolic link of user root"), "\(ended)")
        #expect(try Files.target(ofLink: lock) == "/etc/shadow")
        try Files.remove(lock)
        #expect(try cache().status == 2)
    }

    /// The old journal belongs to the existing file. Without it, an incomplete transaction would count as a valid
    /// cache.
    @Test func `a cache whose journal was set aside is recreated`() throws {
        _ = try cache()
        let facts = try #require(try Files.facts(path))
        try Files.writeNew([1], to: scratch.path(".thumbs.db.moult-old-\(facts.inode)-journal"))
        try Files.writeNew([1], to: scratch.path(".thumbs.db.moult-new"))
        #expect(try cache().status == 2)
        #expect(try names() == ["thumbs.db"])
    }

    /// A file that is not a database would be replaced.
    @Test(arguments: ["schema.sql", "./link.sql"]) func `the script is not used as the cache`(name: String) throws {
        try Files.symlink(to: "schema.sql", at: scratch.path("link.sql"))
        let ended = try BuiltMoult.run(["cache", name, "--schema", "schema.sql"], in: scratch.path)
        #expect(ended.status == 64 && ended.errors.contains("are the same file"), "\(ended)")
        #expect(try Files.read(scratch.path("schema.sql"), limit: 4096) == Array(Self.schema.utf8))
    }
}
