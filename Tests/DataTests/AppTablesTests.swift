import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Tables that an app has renamed, or created under a name that moult uses.
@Suite struct AppTablesTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static let item = "CREATE TABLE item(id INTEGER PRIMARY KEY, name);"
    private static let own: JSON = ["table": "item", "where": "id >= 1000"]

    private func begin(_ sql: String, preserving: [JSON] = [own]) throws {
        try shop.pack("1.0.0", [.shared(Self.item, [Self.own])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(1000, 'MINE'); \(sql)")
        try shop.pack("2.0.0", [.shared(Self.item + "CREATE TABLE more(x);", preserving)])
    }

    @Test(arguments: [[own], []])
    func `without --accept-unpreserved, an update is refused if the app has renamed a preserved table`(
        _ rules: [JSON]
    ) throws {
        try begin("ALTER TABLE item RENAME TO thing;", preserving: rules)
        let before = try shop.tree()
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended)")
        let said = ended.errors.replacing("\n", with: " ")
        #expect(said.contains("app.db has 1 row of app.item in the renamed table thing"), "\(ended)")
        #expect(said.contains("--accept-unpreserved"), "\(ended)")
        #expect(try shop.tree() == before)
        try shop.install("2.0.0", "--accept-unpreserved")
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT name FROM thing") == "MINE\n")
    }

    @Test func `an update does not require --accept-unpreserved for a table that the app created`() throws {
        try begin("CREATE TABLE thing(id INTEGER PRIMARY KEY, name); INSERT INTO thing VALUES(1, 'APP')")
        try shop.install("2.0.0")
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT name FROM thing") == "APP\n")
    }

    @Test func `an update is refused if the app has a table moult_rejected, and the suggested rename works`() throws {
        try begin("CREATE TABLE moult_rejected(why); INSERT INTO moult_rejected VALUES('APP')")
        let ended = try shop.apply("2.0.0")
        #expect(ended.status == 3, "\(ended)")
        let path = shop.path("app.db")
        let rename = "sqlite3 \(path) 'ALTER TABLE moult_rejected RENAME TO app_rejected'"
        let said = ended.errors.replacing("\n", with: " ")
        #expect(said.contains("the table moult_rejected in \(path) does not belong to moult"), "\(ended)")
        #expect(said.contains(rename), "\(ended)")
        try Shell.must(["sh", "-ec", rename])
        try shop.install("2.0.0")
        #expect(try shop.onlyKept("app").sql("app.db", "SELECT why FROM app_rejected") == "APP\n")
    }
}
