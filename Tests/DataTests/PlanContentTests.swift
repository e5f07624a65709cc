import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A plan, a deep plan and a diff show which content of the app an update will drop.
@Suite struct PlanContentTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0, c INT);"
    static func own(_ conflict: String = "keep-user") -> JSON {
        ["table": "item", "where": "mine = 1", "onConflict": .string(conflict), "onReject": "table"]
    }

    /// Packs two releases and installs the first. The app then adds a row that is carried over, a row that is not, and
    /// a table, and changes a shipped row.
    private func begin() throws {
        try shop.pack(
            "1.0.0", [.shared(Self.item + "INSERT INTO item VALUES('one', 0, 1), ('both', 0, 1);", [Self.own()])])
        try shop.install("1.0.0")
        try shop.sql(
            "app.db",
            """
            INSERT INTO item VALUES('APP', 0, 3), ('MINE', 1, 3); UPDATE item SET c = 77 WHERE name = 'one';
            CREATE TABLE own(x); INSERT INTO own VALUES('EXTRA');
            """)
        try shop.pack(
            "2.0.0", [.shared(Self.item + "INSERT INTO item VALUES('two', 0, 1), ('both', 0, 1);", [Self.own()])])
    }

    private static let expected = ["item": Counts(carried: 1, kept: 2), "own": Counts(kept: 1)]

    @Test(arguments: [[], ["--deep"]]) func `a plan counts the rows by table`(words: [String]) throws {
        try begin()
        let ended = try shop.moult(["plan", shop.manifest("2.0.0"), "--json"] + words)
        #expect(ended.status == 2, "\(ended.errors)")
        #expect(Counts.inPlan(try Shop.last(ended), "app") == Self.expected)
    }

    @Test func `the counts of a plan match the update`() throws {
        try begin()
        let result = try Shop.last(shop.apply("2.0.0", "--json"))
        #expect(Counts.inResult(result, "app") == Self.expected)
        let kept = try shop.onlyKept("app")
        #expect(kept.rows("item") == 2)
        #expect(kept.rows("own") == 1)
    }

    @Test func `the plan of a takeover counts the rows that are carried over, as the update does`() throws {
        let sql = Self.item + "CREATE TABLE own(x); CREATE VIRTUAL TABLE find USING fts5(x);"
        try shop.pack("1.0.0", [Shipped(name: "app", kind: "user", sql: sql)])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1, 3), ('APP', 0, 3); INSERT INTO own VALUES('EXTRA')")
        try shop.sql("app.db", "INSERT INTO find VALUES('a'), ('b')")
        try shop.pack("2.0.0", [.shared(sql, [Self.own()])])
        let expected = ["item": Counts(carried: 1, kept: 1), "own": Counts(kept: 1), "find": Counts(kept: 2)]
        let plan = try shop.moult("plan", shop.manifest("2.0.0"), "--take-over", "app", "--json")
        #expect(Counts.inPlan(try Shop.last(plan), "app") == expected)
        let result = try Shop.last(shop.apply("2.0.0", "--take-over", "app", "--json"))
        #expect(Counts.inResult(result, "app") == expected)
    }

    /// The checks of SQLite do not find such damage.
    @Test func `an R-tree that SQLite cannot read does not prevent an update, and is kept`() throws {
        let tree = """
            CREATE VIRTUAL TABLE area USING rtree(id, a, b);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO area SELECT i, i, i + 1 FROM n;
            """
        try shop.pack("1.0.0", [.shared(Self.item + tree, [Self.own()])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "UPDATE area_node SET data = x'ffff' WHERE nodeno = 2")
        try shop.pack("2.0.0", [.shared(Self.item + tree + "CREATE TABLE more(x);", [Self.own()])])
        let expected = ["area": Counts(kept: 1)]
        let plan = try shop.moult("plan", shop.manifest("2.0.0"), "--json")
        #expect(Counts.inPlan(try Shop.last(plan), "app") == expected)
        #expect(Counts.inResult(try Shop.last(shop.apply("2.0.0", "--json")), "app") == expected)
        #expect(try shop.read("app.db", "SELECT count(*) FROM area") == "300\n")
        _ = try shop.onlyKept("app")
    }

    /// The damaged file is kept complete.
    @Test func `a takeover carries over the rows of a sound table although another one is damaged`() throws {
        let sql = Self.item + "CREATE TABLE own(x);"
        try shop.pack("1.0.0", [Shipped(name: "app", kind: "user", sql: sql)])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1, 3); INSERT INTO own VALUES('EXTRA')")
        let page = try shop.sql("app.db", "SELECT rootpage - 1 FROM sqlite_schema WHERE name = 'own'")
        let place =
            shop.path("app.db") + " bs=4096 seek=\(page.filter(\.isNumber)) count=1 conv=notrunc status=none"
        try Shell.must(["sh", "-ec", "tr '\\0' '\\377' < /dev/zero | dd iflag=fullblock of=\(place)"])
        try shop.pack("2.0.0", [.shared(sql, [Self.own()])])
        let ended = try shop.apply("2.0.0", "--take-over", "app")
        #expect(ended.status == 0, "\(ended)")
        #expect(try shop.read("app.db", "SELECT name FROM item") == "MINE\n")
        #expect(try shop.onlyKept("app").reason == "taken-over")
    }

    @Test func `a plan writes nothing, even next to a database in WAL mode`() throws {
        try begin()
        try shop.sql("app.db", "PRAGMA journal_mode = WAL")
        let app = try App(opens: shop.path("app.db"), "INSERT INTO item VALUES('LATE', 1, 1)")
        let before = try shop.tree()
        let plan = try Shop.last(shop.plan("2.0.0", "--json"))
        #expect(Counts.inPlan(plan, "app")["item"] == Counts(carried: 2, kept: 2))
        #expect(try shop.tree() == before)
        app.quit()
    }

    /// Returns the table `item` in the output of diff.
    private func table(_ contents: JSON?) throws -> JSON {
        let database = try #require(contents?["databases"]?.array?.first { $0["name"]?.string == "app" })
        return try #require(database["tables"]?.array?.first { $0["name"]?.string == "item" })
    }

    /// Rows that do not fit, rows in which a column gets lost, and rows that the shipped ones collide with.
    @Test func `a deep plan has the counts of the update, and leaves no trace`() throws {
        let rules = [Self.own("keep-new")]
        try shop.pack("1.0.0", [.shared(Self.item, rules), .user("CREATE TABLE d(a, b); PRAGMA user_version = 1;")])
        try shop.pack(
            "2.0.0",
            [
                .shared(
                    """
                    CREATE TABLE item(name TEXT PRIMARY KEY CHECK(name <> 'bad'), mine INT DEFAULT 0);
                    INSERT INTO item VALUES('both', 0);
                    """, rules),
                .user(
                    "CREATE TABLE d(a); PRAGMA user_version = 2;",
                    ["0002-b.sql": "ALTER TABLE d DROP COLUMN b; PRAGMA user_version = 2;"]),
            ])
        try shop.install("1.0.0")
        try shop.sql(
            "app.db",
            "INSERT INTO item VALUES('bad', 1, NULL), ('both', 1, NULL), ('wide', 1, 7), ('good', 1, NULL), ('left', 0, 1)"
        )
        try shop.sql("diary.db", "INSERT INTO d VALUES(1, 'B'), (2, NULL)")
        let before = try shop.tree()
        let plan = try Shop.last(shop.plan("2.0.0", "--deep", "--json"))
        #expect(try shop.tree() == before)
        let result = try Shop.last(shop.apply("2.0.0", "--json"))
        for name in ["app", "diary"] {
            let counts = Counts.inPlan(plan, name)
            #expect(!counts.isEmpty && counts == Counts.inResult(result, name), "\(name): \(counts)")
        }
    }

    @Test func `a deep plan refuses what the update refuses`() throws {
        try shop.pack("1.0.0", [.shared(Self.item + "INSERT INTO item VALUES('one', 0, 1);", [Self.own()])])
        try shop.install("1.0.0")
        // A rule that blocks the update.
        let blocking: JSON = ["table": "item", "where": "mine = 1", "onReject": "block"]
        try shop.pack(
            "3.0.0", [.shared("CREATE TABLE item(name TEXT PRIMARY KEY, mine INT CHECK(mine = 0), c);", [blocking])])
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1, 3)")
        let deep = try shop.plan("3.0.0", "--deep")
        let applied = try shop.apply("3.0.0")
        #expect(deep.status == 3 && applied.status == 3, "\(deep) \(applied)")
        #expect(deep.errors == applied.errors)
    }

    @Test func `diff compares the release with the live database`() throws {
        try begin()
        let ended = try shop.moult("diff", shop.manifest("2.0.0"), "--rows", "9", "--json")
        #expect(ended.status == 2, "\(ended.errors)")
        let table = try table(Shop.last(ended))
        #expect(table["rowsBefore"]?.integer == 4)
        let removed = (table["samples"]?.array ?? []).filter { $0["change"]?.string == "removed" }
        let names = removed.compactMap { $0["old"]?.array?.first?.string }
        #expect(names.contains("APP") && names.contains("one"), "\(names)")
    }

    @Test func `diff of the installed release and the store shows the app's changes`() throws {
        try begin()
        let ended = try shop.moult("diff", shop.manifest("1.0.0"), "--json")
        #expect(ended.status == 2)
        let table = try table(Shop.last(ended))
        #expect(table["changed"]?.integer == 1)
    }

    // MARK: Migrations

    @Test func `a deep plan refuses an update if the user database lacks the schema of the release`() throws {
        try shop.sql("journal.db", "CREATE TABLE other(x); PRAGMA user_version = 1;")
        try shop.pack("3.0.0", [.user("CREATE TABLE note(t); PRAGMA user_version = 1;", name: "journal")])
        let plan = try shop.plan("3.0.0").output
        #expect(plan.contains("whether it has the tables of the release is known at apply"), "\(plan)")
        for ended in [try shop.plan("3.0.0", "--deep"), try shop.apply("3.0.0")] {
            #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
            #expect(ended.errors.contains("note"), "\(ended.errors)")
        }
    }

    @Test func `apply refuses an earlier release if the user database lacks the schema of that release`() throws {
        for version in ["3.0.0", "4.0.0"] {
            try shop.pack(version, [.user("CREATE TABLE note(t); PRAGMA user_version = 1;", name: "journal")])
            try shop.install(version)
        }
        try shop.sql("journal.db", "DROP TABLE note; CREATE TABLE other(x);")
        for ended in [try shop.plan("3.0.0", "--allow-downgrade"), try shop.apply("3.0.0", "--allow-downgrade")] {
            #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
            #expect(ended.errors.contains("note"), "\(ended.errors)")
        }
        // Unlike `apply`, `rollback` is not refused, because it must be possible after a bad release.
        #expect(try shop.moult("rollback").status == 0)
    }

    @Test func `a deep plan refuses migrations that do not lead to the release's schema`() throws {
        try shop.sql("journal.db", "CREATE TABLE other(x); PRAGMA user_version = 1;")
        try shop.pack(
            "3.0.0",
            [
                .user(
                    "CREATE TABLE note(t); CREATE TABLE more(x); PRAGMA user_version = 2;",
                    ["m/2.sql": "CREATE TABLE more(x); PRAGMA user_version = 2;"], name: "journal")
            ])
        for ended in [try shop.plan("3.0.0", "--deep"), try shop.apply("3.0.0")] {
            #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
            #expect(ended.errors.contains("note"), "\(ended.errors)")
        }
    }

    @Test func `a rollback warns that a user database which was taken over does not fit the older release`() throws {
        try shop.pack("3.0.0", [.user("CREATE TABLE note(t); PRAGMA user_version = 1;", name: "journal")])
        try shop.install("3.0.0")
        try shop.pack("4.0.0", [.shared("CREATE TABLE item(x);", name: "journal", more: [.init("path", "journal.db")])])
        try shop.install("4.0.0", "--take-over", "journal")
        let ended = try shop.moult("rollback")
        #expect(ended.status == 0, "\(ended.errors)")
        let told = ended.output + ended.errors
        #expect(told.contains("does not fit release 3.0.0") && told.contains("moult quarantine"), "\(told)")
    }

    @Test func `a plan does not mention a migration that keeps every value`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE d(a, b); PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO d VALUES('AVALUE', 'BVALUE')")
        try shop.pack(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE d(a, b, c); PRAGMA user_version = 2;",
                    ["m/2.sql": "ALTER TABLE d ADD COLUMN c; PRAGMA user_version = 2;"])
            ])
        let plan = try Shop.last(shop.plan("2.0.0", "--json"))
        #expect((Counts.inPlan(plan, "diary")["d"]?.kept ?? 0) == 0)
        try shop.install("2.0.0")
        #expect(try shop.kept().isEmpty)
    }

    @Test func `a migration may merge two tables`() throws {
        let tables = "CREATE TABLE a(id INTEGER PRIMARY KEY, x); CREATE TABLE b(id INTEGER PRIMARY KEY, x);"
        let merge = "INSERT INTO b SELECT * FROM a; DROP TABLE a; PRAGMA user_version = 2;"
        let shop = try Shop()
        try shop.pack("1.0.0", [.user(tables + "PRAGMA user_version = 1;")])
        try shop.pack("2.0.0", [.user(tables + merge, ["m/2.sql": merge])])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO a VALUES(1, 'one'); INSERT INTO b VALUES(2, 'two')")
        try shop.install("2.0.0")
        #expect(try shop.read("diary.db", "SELECT group_concat(x) FROM (SELECT x FROM b ORDER BY id)") == "one,two\n")
    }
}
