import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult_rejected` contains the complete rows that an update could not carry over, and later releases keep these
/// records.
@Suite struct RejectedRowsTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let open = "CREATE TABLE item(id INTEGER PRIMARY KEY, t, v, mine INT DEFAULT 1);"
    static let strict = "CREATE TABLE item(id INTEGER PRIMARY KEY, t CHECK(t <> 'bad'), v, mine INT DEFAULT 1);"
    static func own(_ conflict: String = "keep-user") -> JSON {
        ["table": "item", "where": "mine = 1", "onReject": "table", "onConflict": .string(conflict)]
    }

    /// Installs a release that rejects the rows of the app.
    private func reject(_ rows: String) throws {
        try shop.pack("1.0.0", [.shared(Self.open, [Self.own()])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item(id, t, v) VALUES\(rows)")
        try shop.pack("2.0.0", [.shared(Self.strict, [Self.own()])])
        try shop.install("2.0.0")
    }

    @Test func `rejected rows stay after later updates`() throws {
        try reject("(10, 'bad', 'MINE')")
        let first = try shop.rejected("app.db")
        #expect(first.contains("MINE"))
        for version in ["3.0.0", "4.0.0"] {
            try shop.pack(
                version,
                [
                    .shared(
                        Self.strict + "INSERT INTO item VALUES(1, '\(version)', 0, 0);", [Self.own()])
                ])
            try shop.install(version)
            #expect(try shop.rejected("app.db") == first)
        }
        #expect(try shop.kept().isEmpty)
    }

    @Test func `each of several equal rejected rows has its own record`() throws {
        func pack(_ version: String, _ check: String = "", _ rows: String = "") throws {
            let sql = "CREATE TABLE item(t \(check), mine INT DEFAULT 1);" + rows
            try shop.pack(version, [.shared(sql, [Self.own()])])
        }
        try pack("1.0.0")
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item(t) VALUES('bad'), ('bad')")
        try pack("2.0.0", "CHECK(t <> 'bad')")
        try shop.install("2.0.0")
        let records = "SELECT count(*) FROM moult_rejected WHERE row LIKE '%bad%'"
        #expect(try shop.read("app.db", records) == "2\n")
        for version in ["3.0.0", "4.0.0"] {
            try pack(version, "CHECK(t <> 'bad')", "INSERT INTO item VALUES('\(version)', 0);")
            try shop.install(version)
            #expect(try shop.read("app.db", records) == "2\n", "\(version)")
        }
        #expect(try shop.kept().isEmpty)
    }

    @Test func `rejected rows stay after a rollback`() throws {
        try reject("(10, 'bad', 'MINE')")
        #expect(try shop.moult("rollback").status == 0)
        let rejected = try shop.rejected("app.db")
        let rows = try shop.sql("app.db", "SELECT v FROM item")
        #expect(rejected.contains("MINE") || rows == "MINE\n")
    }

    @Test func `rejected rows stay after an update to a release that preserves nothing`() throws {
        try reject("(10, 'bad', 'MINE')")
        try shop.pack("3.0.0", [.shared(Self.strict + "CREATE TABLE more(x);")])
        try shop.install("3.0.0")
        #expect(try shop.rejected("app.db").contains("MINE"))
    }

    @Test(arguments: ["9e999", "-9e999", "CAST(x'C4E4FF' AS TEXT)", "x'00FF'", "9007199254740993", "0.1"])
    func `records of similar rejected values differ`(value: String) throws {
        // Each of three similar values has its own record.
        try reject("(10, 'bad', \(value)), (11, 'bad', NULL), (12, 'bad', CAST(x'EFBFBDEFBFBDEFBFBD' AS TEXT))")
        let records = try shop.sql("app.db", "SELECT hex(row) FROM moult_rejected ORDER BY rowid").split(
            separator: "\n")
        try #require(records.count == 3)
        // The records must differ even without the number of the row.
        func record(_ id: Int) throws -> String {
            try shop.sql("app.db", "SELECT hex(replace(row, '\(id)', '')) FROM moult_rejected WHERE row LIKE '%\(id)%'")
        }
        #expect(try record(10) != record(11))
        #expect(try record(10) != record(12))
    }

    @Test func `a shipped row that loses a conflict is recorded once`() throws {
        try shop.pack("1.0.0", [.shared(Self.open, [Self.own()])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(7, 'MINE', NULL, 1)")
        for version in ["2.0.0", "3.0.0", "4.0.0"] {
            try shop.pack(
                version,
                [
                    .shared(
                        Self.open + "INSERT INTO item VALUES(7, 'SHIPPED', NULL, 0), (1, '\(version)', NULL, 0);",
                        [Self.own()])
                ])
            try shop.install(version)
            #expect(try shop.read("app.db", "SELECT t FROM item WHERE id = 7") == "MINE\n")
            #expect(try shop.read("app.db", "SELECT count(*) FROM moult_rejected WHERE row LIKE '%SHIPPED%'") == "1\n")
        }
        // A different shipped row with that key also loses the conflict.
        try shop.pack("5.0.0", [.shared(Self.open + "INSERT INTO item VALUES(7, 'OTHER', NULL, 0);", [Self.own()])])
        try shop.install("5.0.0")
        #expect(try shop.read("app.db", "SELECT count(*) FROM moult_rejected") == "2\n")
    }

    @Test func `with keep-new the user's row is rejected and not lost`() throws {
        try shop.pack("1.0.0", [.shared(Self.open, [Self.own("keep-new")])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(7, 'MINE', NULL, 1), (8, 'FREE', NULL, 1)")
        try shop.pack(
            "2.0.0", [.shared(Self.open + "INSERT INTO item VALUES(7, 'SHIPPED', NULL, 0);", [Self.own("keep-new")])])
        let result = try Shop.last(shop.apply("2.0.0", "--json"))
        #expect(try shop.read("app.db", "SELECT t FROM item ORDER BY id") == "SHIPPED\nFREE\n")
        #expect(try shop.rejected("app.db").contains("MINE"))
        #expect(Counts.inResult(result, "app") == ["item": Counts(carried: 1, rejected: 1)])
        #expect(try shop.kept().isEmpty)
    }

    @Test(arguments: ["keep-user", "keep-new", "fail"]) func `identical rows do not conflict`(conflict: String) throws {
        try shop.pack("1.0.0", [.shared(Self.open, [Self.own(conflict)])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(7, 'SAME', x'00', 1)")
        try shop.pack(
            "2.0.0", [.shared(Self.open + "INSERT INTO item VALUES(7, 'SAME', x'00', 1);", [Self.own(conflict)])])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT t FROM item") == "SAME\n")
        #expect(try shop.rejected("app.db") == "")
    }

    @Test func `rows with equal values but different storage classes conflict`() throws {
        try shop.pack("1.0.0", [.shared(Self.open, [Self.own("fail")])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(7, '1', NULL, 1)")
        try shop.pack("2.0.0", [.shared(Self.open + "INSERT INTO item VALUES(7, 1, NULL, 1);", [Self.own("fail")])])
        #expect(try shop.apply("2.0.0").status == 3)
        #expect(try shop.read("app.db", "SELECT typeof(t) FROM item") == "text\n")
    }

    @Test func `the result counts exactly the carried and the rejected rows`() throws {
        try shop.pack("1.0.0", [.shared(Self.open, [Self.own()])])
        try shop.install("1.0.0")
        try shop.sql(
            "app.db",
            "INSERT INTO item VALUES(10, 'bad', 0, 1), (11, 'good', 0, 1), (12, 'good', 0, 1), (13, 'app', 0, 0)"
        )
        try shop.pack("2.0.0", [.shared(Self.strict, [Self.own()])])
        let result = try Shop.last(shop.apply("2.0.0", "--json"))
        #expect(Counts.inResult(result, "app") == ["item": Counts(carried: 2, rejected: 1, kept: 1)])
        #expect(try shop.kept("app").first?.rows("item") == 1)
    }

    @Test(arguments: ["a column", "a trigger"]) func `columns and triggers that an app adds to moult_rejected stay`(
        addition: String
    ) throws {
        try reject("(10, 'bad', 'MINE')")
        try shop.sql(
            "app.db",
            addition == "a column"
                ? "ALTER TABLE moult_rejected ADD COLUMN seen; UPDATE moult_rejected SET seen = 'YES'"
                : "CREATE TRIGGER mine AFTER DELETE ON moult_rejected BEGIN SELECT 1; END")
        try shop.pack("3.0.0", [.shared(Self.strict + "INSERT INTO item VALUES(1, 's', 0, 0);", [Self.own()])])
        try shop.install("3.0.0")
        #expect(try shop.rejected("app.db").contains("MINE"))
        let kept = try shop.onlyKept("app")
        #expect(
            try addition == "a column"
                ? kept.sql("app.db", "SELECT seen FROM moult_rejected") == "YES\n"
                : kept.sql("app.db", "SELECT name FROM sqlite_schema WHERE type = 'trigger'") == "mine\n")
    }
}
