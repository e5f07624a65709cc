import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The tables that changed between two releases, which a consumer has to read again.
@Suite struct ChangedTablesTests {
    /// Two versions of a database and the tables that differ between them. `tables` is nil if moult cannot name the tables.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let before: String
        let after: String
        let tables: [String]?
    }

    static let same =
        "CREATE TABLE a(x); CREATE TABLE b(x INTEGER PRIMARY KEY, y); INSERT INTO b VALUES(1, 'one'), (2, 'two');"
    static let cases = [
        Case(
            testDescription: "a changed row", before: same, after: same + "UPDATE b SET y = 'TWO' WHERE x = 2;",
            tables: ["b"]),
        Case(
            testDescription: "an additional row", before: same, after: same + "INSERT INTO a VALUES(1);", tables: ["a"]),
        Case(testDescription: "a removed row", before: same, after: same + "DELETE FROM b WHERE x = 2;", tables: ["b"]),
        Case(
            testDescription: "a changed storage class", before: same,
            after: same + "UPDATE b SET y = x'6f6e65' WHERE x = 1;",
            tables: ["b"]),
        Case(
            testDescription: "an additional column", before: same, after: same + "ALTER TABLE a ADD COLUMN z;",
            tables: ["a"]),
        Case(
            testDescription: "an added table and a removed table", before: same,
            after: same + "DROP TABLE a; CREATE TABLE c(x);", tables: ["a", "c"]),
        Case(testDescription: "an additional index", before: same, after: same + "CREATE INDEX i ON b(y);", tables: []),
        Case(
            testDescription: "a virtual table, whose content only its module can read",
            before: same + "CREATE VIRTUAL TABLE v USING fts5(t);",
            after: same + "CREATE VIRTUAL TABLE v USING fts5(t); INSERT INTO a VALUES(1);", tables: ["a", "v"]),
        Case(
            testDescription: "too large to compare", before: same + "INSERT INTO a VALUES(zeroblob(40000000));",
            after: same + "INSERT INTO a VALUES(zeroblob(40000001));", tables: nil),
    ]

    let shop: ConsumerShop
    let maker: ReleaseMaker

    init() throws {
        shop = try ConsumerShop()
        maker = try ReleaseMaker(in: shop.scratch.path("more"))
    }

    private func changedTables(in input: String) throws -> [String]? {
        let bytes = try #require(try Files.read(input, limit: 1 << 20))
        let databases = try JSON(parsing: bytes, source: "message")["databases"]?.array
        return try #require(databases?.first)["tables"]?.array?.compactMap(\.string)
    }

    private func listen() throws -> String {
        let input = shop.scratch.path("input")
        try shop.set(consumers: shop.consumer("api", reload: "cat > \(input)"))
        return input
    }

    @Test(arguments: cases)
    func `consumers get the names of the changed tables of a read-only database`(_ example: Case) throws {
        // The update to 2.0.0 needs a first release to compare with.
        try shop.store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [.reference("food", example.before)]))
        let input = try listen()
        try shop.store.updateBlocking(to: maker.make("2.0.0", sequence: 2, [.reference("food", example.after)]))
        #expect(try changedTables(in: input) == example.tables)
    }

    /// The new release is compared with the current content of a writable database, not with the content that the old
    /// release shipped. moult's own table does not count.
    @Test(arguments: [("", []), ("INSERT INTO a VALUES('mine')", ["a"])])
    func `consumers get the names of the changed tables of a writable database`(
        _ sql: String, _ tables: [String]
    ) throws {
        func release(_ number: Int, _ more: String) throws -> String {
            try maker.make("\(number).0.0", sequence: number, [.shared("pantry", Self.same + more, more: [])])
        }
        try shop.store.updateBlocking(to: release(1, ""))
        try Shell.must(["sqlite3", shop.pantry, sql])
        let input = try listen()
        try shop.store.updateBlocking(to: release(2, "CREATE INDEX i ON b(y);"))
        #expect(try changedTables(in: input) == tables)
    }

    @Test(arguments: [false, true])
    func `consumers get the names of the changed tables of a cache`(isElsewhere: Bool) throws {
        try Shell.must([BuiltMoult.path(), "init", "-q", shop.root, "--product", "org.example.test"])
        if isElsewhere { try shop.set("cacheRoot", JSON.string(shop.scratch.directory("caches")).line) }
        try shop.store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [.cache("thumbs", Self.same)]))
        let input = try listen()
        let after = Self.same + "ALTER TABLE a ADD COLUMN z;"
        try shop.store.updateBlocking(to: maker.make("2.0.0", sequence: 2, [.cache("thumbs", after)]))
        #expect(try changedTables(in: input) == ["a"])
    }
}
