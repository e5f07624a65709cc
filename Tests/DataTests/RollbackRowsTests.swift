import MoultBasics
import TestSupport
import Testing

/// Rows that do not fit an older release do not block a rollback to it: they go to `moult_rejected` or to quarantine,
/// and the plan and the result count them.
@Suite struct RollbackRowsTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static func shelves(below limit: Int, _ name: String) -> String {
        "CREATE TABLE item(name TEXT PRIMARY KEY, shelf INT CHECK (shelf < \(limit)), mine INT DEFAULT 0);"
            + "INSERT INTO item VALUES('\(name)', 1, 0);"
    }

    private static func own(_ more: [JSON.Member] = []) -> JSON {
        .object([.init("table", "item"), .init("where", "mine = 1")] + more)
    }

    private func install(_ version: String, _ sql: String, _ entry: JSON = own(), _ more: [JSON.Member] = []) throws {
        try shop.pack(version, [.shared(sql, [entry], more: more)])
        try shop.install(version)
    }

    /// Rolls back after a dry run, whose counts must be those of the result.
    private func rollback(_ arguments: String...) throws -> [String: Counts] {
        let planned = try Counts.inPlan(Shop.last(shop.moult(["rollback", "--dry-run", "--json"] + arguments)), "app")
        let ended = try shop.moult(["rollback", "--json"] + arguments)
        try #require(ended.status == 0, "\(ended.output)\(ended.errors)")
        let counts = try Counts.inResult(Shop.last(ended), "app")
        #expect(planned == counts)
        return counts
    }

    private func items() throws -> String { try shop.read("app.db", "SELECT * FROM item ORDER BY name") }
    private func rejected() throws -> String { try shop.read("app.db", "SELECT row FROM moult_rejected ORDER BY row") }

    @Test(arguments: ["delete", "wal"], ["block", "table"])
    func `a row that does not fit the older release does not block a rollback`(mode: String, reject: String) throws {
        let entry = Self.own([.init("onReject", .string(reject))])
        try install("1.0.0", Self.shelves(below: 10, "ONE"), entry)
        try shop.sql("app.db", "PRAGMA journal_mode = \(mode)")
        try install("2.0.0", Self.shelves(below: 100, "TWO"), entry)
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 5, 1), ('HIGH', 50, 1)")
        #expect(try rollback() == ["item": Counts(carried: 1, rejected: 1)])
        #expect(try items() == "MINE|5|1\nONE|1|0\n")
        #expect(try rejected() == #"{"name":"HIGH","shelf":50,"mine":1}"# + "\n")
        #expect(try shop.kept().isEmpty)
    }

    /// The operator goes back to the older release and then, with --to, to the newer one, which is still kept.
    @Test func `a rollback to a newer release applies its renames like an update`() throws {
        let renamed = Self.own([.init("columns", ["shelf": "place"])])
        try install("1.0.0", "CREATE TABLE item(name TEXT PRIMARY KEY, shelf INT, mine INT DEFAULT 0);")
        try install(
            "2.0.0", "CREATE TABLE item(name TEXT PRIMARY KEY, shelf INT, mine INT DEFAULT 0, place INT);", renamed)
        try shop.must("rollback")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 5, 1)")
        #expect(try rollback("--to", "2.0.0", "--force") == ["item": Counts(carried: 1)])
        #expect(try shop.read("app.db", "SELECT name, shelf, place FROM item") == "MINE||5\n")
        #expect(try rollback("--to", "1.0.0", "--force") == ["item": Counts(carried: 1)])
        #expect(try shop.read("app.db", "SELECT name, shelf FROM item") == "MINE|5\n")
    }

    /// The publisher and the app chose the same key.
    @Test func `a shipped row that an app's row displaces is counted`() throws {
        try install("1.0.0", Self.shelves(below: 10, "ONE"))
        try shop.sql("app.db", "INSERT INTO item VALUES('TWO', 5, 1)")
        try shop.pack("2.0.0", [.shared(Self.shelves(below: 10, "TWO"), [Self.own()])])
        let result = try Shop.last(shop.moult(["apply", "--json", shop.manifest("2.0.0")]))
        let rows = try #require(result["rows"]?.array?.first)
        #expect(rows["carried"]?.integer == 1 && rows["displaced"]?.integer == 1, "\(result)")
        #expect(try rejected() == #"{"name":"TWO","shelf":1,"mine":0}"# + "\n")
        let history = try shop.moult("history", "-v").output
        #expect(history.contains("1 shipped row"), "\(history)")
    }

    @Test func `a conflict with a row of the older release does not block a rollback`() throws {
        try install("1.0.0", Self.shelves(below: 10, "ONE"), Self.own([.init("onConflict", "fail")]))
        try install("2.0.0", Self.shelves(below: 10, "TWO"))
        try shop.sql("app.db", "INSERT INTO item VALUES('ONE', 2, 1)")
        #expect(try rollback() == ["item": Counts(carried: 1)])
        #expect(try items() == "ONE|2|1\n")
        #expect(try rejected() == #"{"name":"ONE","shelf":1,"mine":0}"# + "\n")
    }

    @Test func `rows that do not fit the older release do not block a rollback over two releases`() throws {
        try install("1.0.0", Self.shelves(below: 10, "ONE"))
        try install("2.0.0", Self.shelves(below: 20, "TWO"))
        try install("3.0.0", Self.shelves(below: 100, "THREE"))
        try shop.sql("app.db", "INSERT INTO item VALUES('HIGH', 50, 1), ('MID', 15, 1)")
        #expect(try rollback("--to", "1.0.0") == ["item": Counts(rejected: 2)])
        #expect(try items() == "ONE|1|0\n")
    }

    @Test func `rows that do not fit the older release do not block a downgrade with apply`() throws {
        try install("1.0.0", Self.shelves(below: 10, "ONE"))
        try install("2.0.0", Self.shelves(below: 100, "TWO"))
        try shop.sql("app.db", "INSERT INTO item VALUES('HIGH', 50, 1)")
        let ended = try shop.apply("1.0.0", "--allow-downgrade", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try Counts.inResult(Shop.last(ended), "app") == ["item": Counts(rejected: 1)])
    }

    @Test(arguments: ["", "NOT NULL"])
    func `a renamed column gets its old name back in a rollback`(constraint: String) throws {
        func item(_ column: String) -> String {
            "CREATE TABLE item(name TEXT PRIMARY KEY, \(column) TEXT \(constraint), mine INT DEFAULT 0);"
        }
        let renamed = Self.own([.init("columns", ["desc": "note"])])
        try install("1.0.0", item("desc"))
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 'BEFORE', 1)")
        try install("2.0.0", item("note"), renamed)
        try install("3.0.0", item("note") + "CREATE TABLE other(x);", renamed)
        try shop.sql("app.db", "INSERT INTO item VALUES('NEW', 'AFTER', 1)")
        let all = "MINE|BEFORE|1\nNEW|AFTER|1\n"
        #expect(try rollback() == ["item": Counts(carried: 2)])
        #expect(try items() == all)
        #expect(try rollback() == ["item": Counts(carried: 2)])
        #expect(try shop.read("app.db", "SELECT name, desc, mine FROM item ORDER BY name") == all)
        try shop.must("unhold", "--all")
        try shop.install("2.0.0", "--allow-downgrade")
        #expect(try shop.read("app.db", "SELECT name, note, mine FROM item ORDER BY name") == all)
        #expect(try shop.kept().isEmpty)
    }

    @Test
    func `if rows cannot be selected, a rollback keeps them, and an update is refused unless the operator accepts it`()
        throws
    {
        try install("1.0.0", Self.shelves(below: 10, "ONE"))
        try install("2.0.0", Self.shelves(below: 10, "TWO"))
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 5, 1); ALTER TABLE item RENAME mine TO own")
        try shop.pack("3.0.0", [.shared(Self.shelves(below: 10, "THREE"), [Self.own()])])
        for ended in try [shop.plan("3.0.0"), shop.apply("3.0.0")] {
            #expect(ended.status == 3)
            #expect(ended.errors.contains("no such column: mine"), "\(ended.errors)")
            #expect(ended.errors.contains("--accept-unpreserved"), "\(ended.errors)")
        }
        let counts = try rollback()
        #expect(counts["item"]?.kept ?? 0 > 0)
        #expect(try items() == "ONE|1|0\n")
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT name FROM item WHERE own = 1") == "MINE\n")
    }

    // MARK: Content of a release that is not installed

    /// Restores the content of 1.0.0 while 2.0.0 is installed. The column that marks rows of the app has a different
    /// name in the two releases.
    private func restoreOldSet() throws {
        func item(_ mark: String, _ name: String) -> String {
            "CREATE TABLE item(name TEXT PRIMARY KEY, \(mark) INT DEFAULT 0); INSERT INTO item VALUES('\(name)', 0);"
        }
        let newer: JSON = ["table": "item", "where": "own = 1", "columns": ["mine": "own"]]
        try install("1.0.0", item("mine", "ONE"))
        // Because of the view, the whole database is kept.
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1), ('APP', 0); CREATE VIEW v AS SELECT 1")
        try install("2.0.0", item("own", "TWO"), newer)
        try shop.pack("3.0.0", [.shared(item("own", "THREE"), [newer])])
        #expect(try shop.moult("quarantine", "--restore", "app").status == 0)
        #expect(try items() == "APP|0\nMINE|1\nONE|0\n")
    }

    @Test(arguments: ["2.0.0", "3.0.0"])
    func `rows of a restored set are selected by the conditions of the release that the set is from`(version: String)
        throws
    {
        try restoreOldSet()
        let planned = try Counts.inPlan(Shop.last(shop.plan(version, "--json")), "app")
        let ended = try shop.apply(version, "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        let counts = try Counts.inResult(Shop.last(ended), "app")
        #expect(counts == ["item": Counts(carried: 1, kept: 1)])
        #expect(planned == counts)
        #expect(try items() == (version == "2.0.0" ? "MINE|1\nTWO|0\n" : "MINE|1\nTHREE|0\n"))
        #expect(try shop.moult("verify").status == 0)
    }

    @Test func `a rollback leaves a restored set of the older release in place`() throws {
        try restoreOldSet()
        #expect(try shop.moult("rollback").status == 0)
        #expect(try items() == "APP|0\nMINE|1\nONE|0\n")
    }

    // MARK: A renamed database

    @Test func `a release that renames a database still requires consent to stop preserving rows`() throws {
        let more: [JSON.Member] = [.init("path", "app.db")]
        try install("1.0.0", Self.shelves(below: 10, "ONE"), Self.own(), more)
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 5, 1), ('APP', 6, 0)")
        let before = try shop.tree()
        try shop.pack("2.0.0", [.shared(Self.shelves(below: 10, "TWO"), name: "other", more: more)])
        #expect(try shop.plan("2.0.0").status == 3)
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains("--accept-unpreserved"), "\(ended.errors)")
        #expect(try shop.tree() == before)

        try shop.pack("3.0.0", [.shared(Self.shelves(below: 10, "THREE"), [Self.own()], name: "other", more: more)])
        let planned = try Counts.inPlan(Shop.last(shop.plan("3.0.0", "--json")), "other")
        let counts = try Counts.inResult(Shop.last(shop.apply("3.0.0", "--json")), "other")
        #expect(counts == ["item": Counts(carried: 1, kept: 1)])
        #expect(planned == counts)
        #expect(try items() == "MINE|5|1\nTHREE|1|0\n")
        #expect(try rollback() == ["item": Counts(carried: 1)])
        #expect(try items() == "MINE|5|1\nONE|1|0\n")
    }
}
