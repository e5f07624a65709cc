import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// SQLite cannot be stopped within a function, and some functions take years for a few bytes. After a signal, the command ends
/// anyway, and the next one recovers.
@Suite struct StuckFunctionTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    /// Compares eight megabytes at each of eight million places. `x` is a column, so that SQLite does not compute the value before.
    private static func stuck(_ x: String) -> String {
        "instr(zeroblob(16000000), zeroblob(8000000) || x'01' || \(x))"
    }

    /// The command runs until the signal, then it ends with status 1 within seconds, and says so.
    private func stop(_ number: Int32, _ line: String) throws {
        let errors = shop.scratch.path("errors")
        let begin = ContinuousClock.now
        let status = try EndlessStatementTests.stop(
            number, ["bash", "-c", "exec \(line) 2>'\(errors)'"])
        #expect(status == 1)
        // Two seconds of computing, two of patience, and as much again for a busy machine.
        #expect(ContinuousClock.now - begin < .seconds(30))
        let text = try String(decoding: Files.read(errors, limit: 1 << 20) ?? [], as: UTF8.self)
        #expect(text.contains("interrupted while SQLite worked on "), "\(text)")
        #expect(text.contains("a function in the SQL of a database did not end within 2 s"), "\(text)")
    }

    @Test(
        .tags(.sampled),
        arguments: [
            "CREATE TABLE item(id INTEGER PRIMARY KEY, x, g AS (\(stuck("x"))) STORED)",
            "CREATE TABLE item(id INTEGER PRIMARY KEY, x CHECK(\(stuck("x")) = 0))",
            "CREATE TABLE item(id INTEGER PRIMARY KEY, x); CREATE INDEX i ON item(\(stuck("x")))",
            "CREATE TABLE item(id INTEGER PRIMARY KEY, x); CREATE INDEX i ON item(x) WHERE \(stuck("x")) > 0",
        ].sampled(1))
    func `a signal ends a replacement by a file with such a function`(_ schema: String) throws {
        let (old, new) = (shop.scratch.path("old.db"), shop.scratch.path("new.db"))
        try Shop.sql(old, "CREATE TABLE item(id INTEGER PRIMARY KEY, x); INSERT INTO item(x) VALUES('mine')")
        try Shop.sql(new, schema)
        let moult = try Shop.command()
        try stop(SIGTERM, "\(moult) replace \(old) \(new) --preserve item")
        #expect(try Shop.read(old, "SELECT x FROM item") == "mine\n")
        // The end of the process has released its locks, and the next command removes what it left.
        try Shop.sql(new, "DROP TABLE item; CREATE TABLE item(id INTEGER PRIMARY KEY, x)")
        try Shell.must([moult, "replace", "-q", old, new, "--preserve", "item"])
        #expect(try Shop.read(old, "SELECT x FROM item") == "mine\n")
    }

    private static let note = "CREATE TABLE note(t); PRAGMA user_version = 1;"

    @Test(
        .tags(.sampled),
        arguments: [
            ("apply", SIGTERM), ("apply", SIGINT), ("apply", SIGHUP), ("migration", SIGINT), ("migration", SIGTERM),
            ("migration", SIGHUP),
        ].sampled(2))
    func `a signal ends an update by a release with such a function`(_ kind: String, number: Int32) throws {
        var shared = Shipped.shared("CREATE TABLE item(x);", [["table": "item"]])
        try shop.install(try shop.makeUnchecked("1.0.0", [.user(Self.note), shared]))
        try shop.sql("diary.db", "INSERT INTO note VALUES('DIARY')")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE')")
        let before = try shop.tree()
        var user = Shipped.user(Self.note)
        if kind == "apply" {
            shared.sql = "CREATE TABLE item(x, g AS (\(Self.stuck("x"))) STORED);"
        } else {
            // The migration recognizes that it does not run for trial.
            let isReal = "EXISTS(SELECT 1 FROM pragma_database_list WHERE file LIKE '%/store/diary.db')"
            user = .user(
                "CREATE TABLE note(t, n); PRAGMA user_version = 2;",
                [
                    "2":
                        "ALTER TABLE note ADD COLUMN n; UPDATE note SET n = CASE WHEN \(isReal) THEN \(Self.stuck("t")) END; PRAGMA user_version = 2;"
                ])
        }
        let release = try shop.makeUnchecked("2.0.0", [user, shared])
        try stop(number, "\(Shop.command()) apply \(release) --store \(shop.store)")
        try shop.must("recover")
        #expect(try shop.tree() == before)
        try shop.must("verify")
    }

    /// The app has registered a function with the same name that returns at once.
    @Test func `a signal ends a salvage of a database with such a function`() throws {
        try shop.install(try shop.makeUnchecked("1.0.0", [.user(Self.note)]))
        try Shell.must([
            "python3", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.create_function("instr", 2, lambda a, b: 0, deterministic=True)
            c.executescript(sys.argv[2])
            """, shop.path("diary.db"),
            "CREATE TABLE own(x); CREATE INDEX i ON own(\(Self.stuck("x"))); INSERT INTO own VALUES('mine')",
        ])
        // Rows are salvaged only from a file that is set aside.
        try shop.addInvalidJournal("diary.db")
        let before = try shop.tree()
        // A confined process reads the copy, so the command itself ends as usual.
        let reset = try [Shop.command(), "reset", "diary", "--set-user-data-aside", "--store", shop.store]
        #expect(try EndlessStatementTests.stop(SIGTERM, reset) == 1)
        #expect(try shop.tree() == before)
    }

    /// One value that is too large, or a hundred values that are together.
    @Test(arguments: [
        ("hex(zeroblob(200000000 + length(x)))", 1, "SQL on this database may make values of at most 16 MiB"),
        ("hex(zeroblob(8000000 + length(x)))", 100, "out of memory"),
    ])
    func `a file of a few kilobytes cannot fill the memory`(_ value: String, _ count: Int, _ why: String) throws {
        let (old, new) = (shop.scratch.path("old.db"), shop.scratch.path("new.db"))
        try Shop.sql(old, "CREATE TABLE item(x); INSERT INTO item VALUES('mine')")
        let columns = (0..<count).map { ", g\($0) AS (\(value)) STORED" }.joined()
        try Shop.sql(new, "CREATE TABLE item(x\(columns))")
        // 1 GiB for SQLite, and as much for everything else. Without a limit, one value needs 1.2 GB, and a hundred need 1.6 GB.
        let limited = "ulimit -v 4000000; exec \"$@\""
        let ended = try Shell.run([
            "/usr/bin/env", "bash", "-c", limited, "bash", Shop.command(), "replace", old, new, "--preserve", "item",
        ])
        #expect(ended.status == 1, "\(ended)")
        #expect(ended.errors.contains(why) && ended.errors.contains("generated column"), "\(ended.errors)")
        #expect(try Shop.read(old, "SELECT x FROM item") == "mine\n")
    }
}
