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
