import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `preserve` is checked when a release is packed and when it is installed, so that no row is lost because of a
/// misspelled name.
@Suite struct PreserveCheckTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    static let schema = "CREATE TABLE item(name TEXT PRIMARY KEY, cents INT, mine INT DEFAULT 0);"
    static let good: JSON = ["table": "item", "where": "mine = 1"]

    /// Invalid entries, each with the word that the message must contain.
    static let wrong: [(entry: JSON, word: String)] = [
        (["table": "itm"], "itm"),
        (["table": "item", "where": "mien = 1"], "mien"),
        (["table": "item", "where": "\"mien\" = 1"], "mien"),
        (["table": "item", "where": "mine ="], "mine ="),
        (["table": "item", "where": "1) OR (1"], "1) OR (1"),
        (["table": "item", "where": "random() > 0"], "random"),
        (["table": "item", "where": "cents < unixepoch()"], "unixepoch"),
        (["table": "item", "where": "name < datetime('now')"], "datetime"),
        (["table": "item", "where": "name = CURRENT_DATE"], "CURRENT_DATE"),
        (["table": "item", "where": "appfunc(name)"], "appfunc"),
        (["table": "item", "where": "rowid IN (SELECT last_insert_rowid())"], "last_insert_rowid"),
        (["table": "item", "where": "mine = 1", "columns": ["cents": "centz"]], "centz"),
        (["table": "item", "columns": ["price": "cent"]], "cent"),
        (["table": "sqlite_schema"], "sqlite_schema"),
    ]

    @Test(arguments: wrong)
    func `pack refuses an invalid preserve entry, and the error names the invalid part`(
        _ wrong: (entry: JSON, word: String)
    ) throws {
        let ended = try shop.tryToPack("1.0.0", [.shared(Self.schema, [wrong.entry])])
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(ended.errors.contains(wrong.word), "\(ended.errors)")
        #expect(try Files.facts(shop.manifest("1.0.0")) == nil)
    }

    @Test(.tags(.sampled), arguments: wrong.sampled(5))
    func `a release with an invalid preserve entry is refused, and no row is lost`(
        _ wrong: (entry: JSON, word: String)
    ) throws {
        try shop.pack("1.0.0", [.shared(Self.schema, [Self.good])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 7, 1)")
        let next = try shop.makeUnchecked(
            "2.0.0", [.shared(Self.schema + "INSERT INTO item VALUES('TWO', 5, 0);", [wrong.entry])])
        let ended = try shop.apply(next)
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(try shop.read("app.db", "SELECT * FROM item") == "MINE|7|1\n")
        #expect(try shop.version() == "1.0.0")
    }

    @Test(.tags(.sampled), arguments: wrong.sampled(5))
    func `a first release with an invalid preserve entry is refused`(_ wrong: (entry: JSON, word: String)) throws {
        let release = try shop.makeUnchecked("1.0.0", [.shared(Self.schema, [wrong.entry])])
        let ended = try shop.apply(release)
        #expect(ended.status == 3, "\(ended.output)\(ended.errors)")
        #expect(try Files.facts(shop.path("app.db")) == nil)
    }

    static let right: [JSON] = [
        ["table": "ITEM", "where": "Mine = 1"],
        ["table": "item", "where": "\"mine\" = 1 AND name <> 'it''s \"quoted\"'"],
        ["table": "item", "where": "lower(name) LIKE '%e' OR mine IN (1, 2)"],
        ["table": "item", "columns": ["price": "cents"]],
    ]

    @Test(arguments: right) func `pack accepts a preserve entry that is valid in SQLite`(_ entry: JSON) throws {
        let ended = try shop.tryToPack("1.0.0", [.shared(Self.schema, [entry])])
        #expect(ended.status == 0, "\(ended.errors)")
    }

    @Test(arguments: right) func `a valid preserve entry carries the row over`(_ entry: JSON) throws {
        try shop.pack("1.0.0", [.shared(Self.schema, [entry])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 7, 1)")
        try shop.pack("2.0.0", [.shared(Self.schema + "INSERT INTO item VALUES('TWO', 5, 0);", [entry])])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT * FROM item ORDER BY name") == "MINE|7|1\nTWO|5|0\n")
    }

    @Test func `a condition that ends in a comment carries the row over`() throws {
        let entry: JSON = ["table": "item", "where": "mine = 1 -- what users wrote"]
        let packed = try shop.tryToPack("1.0.0", [.shared(Self.schema, [entry])])
        #expect(packed.status == 0, "\(packed)")
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 7, 1)")
        try shop.pack("2.0.0", [.shared(Self.schema + "INSERT INTO item VALUES('TWO', 5, 0);", [entry])])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT * FROM item ORDER BY name") == "MINE|7|1\nTWO|5|0\n")
    }

    @Test func `a renamed column keeps its values`() throws {
        try shop.pack("1.0.0", [.shared(Self.schema, [Self.good])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 7, 1)")
        let renamed = "CREATE TABLE item(name TEXT PRIMARY KEY, price INT, own INT);"
        try shop.pack(
            "2.0.0",
            [.shared(renamed, [["table": "item", "where": "own = 1", "columns": ["cents": "price", "mine": "own"]]])])
        try shop.install("2.0.0")
        #expect(try shop.read("app.db", "SELECT name, price, own FROM item") == "MINE|7|1\n")
        #expect(try shop.kept().isEmpty)
    }

    /// The installed release still selects the rows once; the release after that does not.
    @Test func `diff says that a narrower condition leaves rows behind later`() throws {
        let narrow: JSON = ["table": "item", "where": "mine = 2"]
        let first = try shop.pack("1.0.0", [.shared(Self.schema, [Self.good])])
        let second = try shop.pack("2.0.0", [.shared(Self.schema, [narrow])])
        func notes(_ old: String, _ new: String) throws -> String {
            try Shell.run([Shop.command(), "diff", old, new]).output.replacing("\n", with: " ")
        }
        #expect(
            try notes(first, second).contains("app: the condition of item changes; rows that only the old one selects"))
        #expect(try !notes(first, first).contains("condition"))
    }
}
