import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// If nothing but rows differs from the release, quarantine gets only the rows that an update leaves behind.
@Suite struct KeptRowsTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, shelf INTEGER);"
    private static let shelves = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO item SELECT printf('shipped %d', i), i FROM n;
        """

    /// Packs two releases that differ in a row, and installs the first.
    private func begin(_ sql: String) throws {
        for number in 1...2 {
            try shop.pack(
                "\(number).0.0", [.shared("\(sql); CREATE TABLE version(v); INSERT INTO version VALUES(\(number));")])
        }
        try shop.install("1.0.0")
    }

    /// Installs the second release after the app has run SQL.
    private func update(_ shipped: String, app sql: String) throws {
        try begin(shipped)
        try shop.sql("app.db", sql)
        try shop.install("2.0.0")
    }

    @Test func `an update keeps one row of a large database as a row`() throws {
        try update(
            Self.item + Self.shelves,
            app: "INSERT INTO item VALUES('mine', 1); UPDATE item SET shelf = 0 WHERE shelf = 9")
        let kept = try shop.onlyKept("app")
        #expect(try kept.sql("app.db", "SELECT * FROM item ORDER BY name") == "mine|1\nshipped 9|0\n")
        #expect(kept.reason == "replaced" && kept.release == "1.0.0" && kept.rows("item") == 2)
        #expect(try Files.facts("\(kept.directory)/app.db").map { $0.size <= 1024 && $0.mode == 0o600 } == true)
        let listed = try Shop.last(try shop.moult("quarantine", "--json"))["quarantine"]?.array ?? []
        #expect(listed.count == 1 && listed.first?["rowsOnly"]?.bool == true, "\(listed)")
    }

    @Test func `the result of an update counts the kept rows`() throws {
        try begin(Self.item)
        try shop.sql("app.db", "INSERT INTO item VALUES('mine', 1)")
        let ended = try shop.apply("2.0.0")
        #expect(
            ended.errors.contains(
                "warning: app: 1 row that the new content does not have is in quarantine; see it with: "),
            "\(ended)")
    }

    @Test(arguments: [
        "CREATE TABLE own(x)", "CREATE INDEX own ON item(shelf)", "CREATE VIEW own AS SELECT 1",
        "CREATE TRIGGER own AFTER INSERT ON item BEGIN SELECT 1; END", "ALTER TABLE item ADD COLUMN own",
        "PRAGMA user_version = 7", "PRAGMA application_id = 7", "INSERT INTO search VALUES('own')",
    ])
    func `the whole database is kept if anything but rows differs`(change: String) throws {
        let schema = Self.item + "CREATE VIRTUAL TABLE search USING fts5(x);"
        try update(
            schema + "INSERT INTO item VALUES('shipped', 0);", app: "INSERT INTO item VALUES('mine', 1); \(change)")
        let kept = try shop.onlyKept("app")
        #expect(try kept.sql("app.db", "SELECT name FROM item ORDER BY name") == "mine\nshipped\n")
        #expect(kept.record["rowsOnly"] == nil)
    }

    @Test func `an update that ends with 75 keeps no rows`() throws {
        try begin(Self.item)
        try shop.sql("app.db", "INSERT INTO item VALUES('mine', 1)")
        let app = try App(opens: shop.path("app.db"), "BEGIN IMMEDIATE")
        #expect(try shop.apply("2.0.0").status == 75)
        #expect(try shop.kept().isEmpty)
        app.crash()
    }

    // MARK: Values

    /// Tables in which SQLite stores values in different ways.
    private static let tables = """
        CREATE TABLE plain(x, t TEXT, i INTEGER, n NUMERIC, g AS (t || '!') STORED, v AS (i) VIRTUAL);
        CREATE TABLE keyed(k INTEGER PRIMARY KEY, x, u UNIQUE);
        CREATE TABLE pair(a COLLATE NOCASE, b, x, PRIMARY KEY(a, b)) WITHOUT ROWID;
        CREATE TABLE odd("rowid", "oid" TEXT, "group" BLOB);
        """
    private static let rows = """
        INSERT INTO plain(x, t) VALUES(1, 'shipped'), (1, 'shipped'), (NULL, NULL);
        INSERT INTO keyed VALUES(1, 'shipped', 1), (2, 'shipped', 2);
        INSERT INTO pair VALUES('A', 1, 'shipped'), ('b', x'00', NULL); INSERT INTO odd VALUES(1, 'shipped', x'01');
        """

    private static let values = [
        "NULL", "0", "-1", "9223372036854775807", "0.1", "-0.0", "9e999", "'7'", "'007'", "''", "x''", "x'00ff'", "'Ä'",
        "CAST(x'610062' AS TEXT)", "zeroblob(3000)", "'long' || hex(zeroblob(900))", "1e15", "CAST(x'ff' AS TEXT)",
    ]

    /// Returns statements of an app, with only inserts if `isNew`. Some statements fail, because a key is taken.
    private static func statements(_ random: inout SeededRandom, isUTF8: Bool, isNew: Bool) -> String {
        let values = values.filter { isUTF8 || !$0.contains("x'ff' AS TEXT") }
        func value() -> String { values.randomElement(using: &random) ?? "NULL" }
        return (0..<12).map { number in
            switch Int.random(in: 0..<(isNew ? 4 : 7), using: &random) {
            case 0: "INSERT OR IGNORE INTO plain(x, t, i, n) VALUES(\(value()), \(value()), \(value()), \(value()));"
            case 1: "INSERT OR IGNORE INTO keyed VALUES(\(100 + number), \(value()), 'unique \(number)');"
            case 2: "INSERT OR IGNORE INTO pair VALUES('own \(number)', \(value()), \(value()));"
            case 3: "INSERT INTO odd VALUES(\(value()), \(value()), \(value()));"
            case 4: "UPDATE plain SET x = \(value()) WHERE rowid = 1;"
            case 5: "UPDATE OR IGNORE keyed SET x = \(value()) WHERE k = \(number % 2 + 1);"
            default: "DELETE FROM pair WHERE a = 'a'; UPDATE odd SET \"group\" = \(value()) WHERE \"oid\" = 'shipped';"
            }
        }.joined(separator: "\n")
    }

    /// Returns how often each row is in a database, with its table, the types and the bytes of its values.
    private func count(_ file: String) throws -> [String: Int] {
        let text = try Shell.must([
            "python3", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.execute("PRAGMA encoding")
            for table in ("plain", "keyed", "pair", "odd"):
                if not c.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone(): continue
                names = [r[1] for r in c.execute(f"PRAGMA table_xinfo({table})") if r[6] == 0]
                parts = ", ".join(f'typeof("{n}"), CASE typeof("{n}") WHEN \\'real\\' THEN "{n}" WHEN \\'integer\\' THEN "{n}"'
                                  f' ELSE hex(CAST("{n}" AS BLOB)) END' for n in names)
                for row in c.execute(f"SELECT {parts} FROM {table}"): print(table, repr(row))
            """, file,
        ])
        return text.split(separator: "\n").reduce(into: [:]) { $0[String($1), default: 0] += 1 }
    }

    @Test(arguments: ["UTF-8", "UTF-16le"], [1, 2, 3, 4])
    func `each kept row has its values byte for byte, and can be restored`(encoding: String, seed: Int) throws {
        var random = SeededRandom(seed)
        let isNew = seed.isMultiple(of: 2)
        let schema = "PRAGMA encoding = '\(encoding)';" + Self.tables
        let sql = Self.statements(&random, isUTF8: encoding == "UTF-8", isNew: isNew)
        try begin(schema + Self.rows)
        let shipped = try count(shop.path("app.db"))
        try shop.sql("app.db", "PRAGMA journal_mode = \(seed > 2 ? "wal" : "delete"); \(sql)")
        let before = try count(shop.path("app.db"))
        let own = before.merging(shipped) { $0 - $1 }.filter { before[$0.key] != nil && $0.value > 0 }
        try #require(!own.isEmpty)
        try shop.install("2.0.0")
        let kept = try shop.onlyKept("app")
        #expect(kept.record["rowsOnly"]?.bool == true)
        let file = shop.scratch.path("kept.db")
        try shop.must("quarantine", "--export", file, "app")
        #expect(try count(file) == own)
        var carried: Int64 = 0
        var rejected: Int64 = 0
        for table in ["plain", "keyed", "pair", "odd"] where kept.rows(table) != nil {
            let fate = try Shop.last(shop.moult("quarantine", "--restore", "app", "--table", table, "--json"))
            carried += fate["carried"]?.integer ?? 0
            rejected += fate["rejected"]?.integer ?? 0
        }
        #expect(Int(carried + rejected) == own.values.reduce(0, +))
        if isNew { #expect(try rejected == 0 && count(shop.path("app.db")) == before) }
        #expect(try shop.read("app.db", "PRAGMA integrity_check") == "ok\n")
    }

    // MARK: Restoring

    @Test func `a restore of the whole database is refused, and the advised command restores the rows`() throws {
        try update(Self.item + Self.shelves, app: "INSERT INTO item VALUES('mine', 1)")
        let before = try shop.tree()
        let ended = try shop.moult("quarantine", "--restore", "app")
        #expect(ended.status == 3 && ended.errors.contains("is not a whole database"), "\(ended)")
        #expect(try shop.tree() == before)
        let command = try #require(ended.errors.firstRange(of: "(item): moult "), "\(ended)").upperBound
        try shop.scratch.must("moult \(ended.errors[command...])")
        #expect(try shop.sql("app.db", "SELECT count(*) FROM item") == "5001\n")
    }

    // MARK: Many updates

    /// Runs updates, each after the app has written a row.
    private func updates(_ numbers: Range<Int>, _ sql: (Int) -> String) throws {
        for number in numbers {
            try shop.sql("app.db", sql(number))
            try shop.install(number.isMultiple(of: 2) ? "1.0.0" : "2.0.0", "--allow-downgrade", "-q")
        }
    }

    @Test func `older sets of rows are collected, and each row names its release and reason`() throws {
        try begin(Self.item)
        // The same key in each update.
        try updates(1..<21) { "INSERT INTO item VALUES('mine', \($0))" }
        let kept = try shop.kept("app")
        #expect(kept.count == 17)
        let all = try #require(kept.first)
        #expect(all.rows("item") == 4)
        let sql = """
            SELECT shelf, release, reason, (SELECT count(DISTINCT "set") FROM moult_kept) FROM moult_kept
            JOIN item ON "table" = 'item' AND item.rowid = "row" ORDER BY 1
            """
        #expect(
            try all.sql("app.db", sql)
                == "1|1.0.0|replaced|4\n2|2.0.0|replaced|4\n3|1.0.0|replaced|4\n4|2.0.0|replaced|4\n")
        let id = Files.name(of: all.directory)
        #expect(try shop.moult("quarantine", "--restore", id, "--table", "moult_kept").status == 3)
        let fate = try Shop.last(shop.moult("quarantine", "--restore", id, "--table", "item", "--json"))
        #expect(Counts(fate) == Counts(carried: 1, rejected: 3), "\(fate)")
    }

    @Test func `rows of a table with other columns are not collected in one set`() throws {
        try shop.pack("1.0.0", [.shared(Self.item)])
        try shop.pack("2.0.0", [.shared("CREATE TABLE item(name TEXT PRIMARY KEY, shelf INTEGER, more);")])
        try shop.install("1.0.0")
        try updates(1..<20) { "INSERT INTO item(name) VALUES('mine \($0).')" }
        #expect(try shop.kept("app").count == 19)
        for number in 1..<20 { #expect(try shop.databases(with: "mine \(number).").count == 1, "\(number)") }
    }

    @Test func `a set that another program has changed is not collected`() throws {
        try begin(Self.item)
        try updates(1..<2) { "INSERT INTO item VALUES('mine', \($0))" }
        let first = try shop.onlyKept("app")
        try Shell.must([
            "sqlite3", "\(first.directory)/app.db", "CREATE TRIGGER own AFTER INSERT ON item BEGIN SELECT 1; END",
        ])
        try updates(2..<20) { "INSERT INTO item VALUES('mine', \($0))" }
        let kept = try shop.kept("app")
        #expect(kept.count == 18 && kept.first?.rows("item") == 1 && kept.dropFirst().first?.rows("item") == 2)
    }

    @Test(.tags(.thorough, .slow)) func `a killed update that collects rows leaves each row in one place`() throws {
        try begin(Self.item)
        try updates(1..<18) { "INSERT INTO item VALUES('mine \($0).', 0)" }
        try shop.sql("app.db", "INSERT INTO item VALUES('mine 18.', 0)")
        let before = shop.scratch.path("before")
        try Shell.must(["mv", shop.store, before])
        let calls = "rename,renameat,renameat2,unlink,unlinkat,mkdirat,openat,fsync,fdatasync,pwrite64,write"
        var (number, killed) = (1, 0)
        while true {
            let script = "chmod -R u+w \"$1\" 2> /dev/null || :; rm -rf \"$1\"; cp -a \"$2\" \"$1\""
            try Shell.must(["sh", "-ec", script, "sh", shop.store, before])
            let ended = try Shell.run([
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e",
                "inject=\(calls):signal=KILL:when=\(number)", try Shop.command(), "apply", "-q", "--allow-downgrade",
                shop.manifest("1.0.0"), "--store", shop.store,
            ])
            try shop.install("1.0.0", "--allow-downgrade", "-q")
            // Removes what is left of a set whose rows were collected.
            try shop.must("clean", "-q")
            for row in 1...18 {
                #expect(try shop.databases(with: "mine \(row).").count == 1, "call \(number), row \(row)")
            }
            if ended.status == 0 { break }
            (number, killed) = (number + 17, killed + 1)
        }
        #expect(killed > 10)
    }
}
