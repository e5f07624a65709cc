import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A release cannot give a database with app data another path: apps may have the file open, and no rename is safe then.
@Suite struct MovedPathTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static let note = "CREATE TABLE note(t); PRAGMA user_version = 1;"
    private static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    private static let own: JSON = ["table": "item", "where": "mine = 1"]

    private func databases(_ kind: String, _ more: [JSON.Member] = []) -> [Shipped] {
        kind == "user" ? [.user(Self.note, more: more)] : [.shared(Self.item, [Self.own], more: more)]
    }

    @Test(arguments: ["user", "shared"])
    func `plan and apply refuse another path, and change nothing`(kind: String) throws {
        let name = kind == "user" ? "diary" : "app"
        try shop.pack("1.0.0", databases(kind))
        try shop.install("1.0.0")
        try shop.sql(
            "\(name).db", kind == "user" ? "INSERT INTO note VALUES('MINE')" : "INSERT INTO item VALUES('MINE', 1)")
        try shop.pack("2.0.0", databases(kind, [.init("path", "new.db")]))
        let before = try Tree(shop.store)
        let planned = try shop.plan("2.0.0")
        #expect(try Tree(shop.store) == before)
        let applied = try shop.apply("2.0.0")
        for ended in [planned, applied] {
            #expect(ended.status == 3, "\(ended)")
            #expect(ended.errors.contains("keeps the path \(name).db"), "\(ended.errors)")
        }
        #expect(try Files.list(shop.store).filter { $0.hasSuffix(".db") } == ["\(name).db"])
        #expect(try shop.version() == "1.0.0")
    }

    @Test func `a release may give a database at another path another name`() throws {
        try shop.pack("1.0.0", [.user(Self.note)])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO note VALUES('MINE')")
        try shop.pack("2.0.0", [.user(Self.note, name: "journal", more: [.init("path", "new.db")])])
        try shop.install("2.0.0")
        #expect(try shop.read("diary.db", "SELECT t FROM note") == "MINE\n")
        #expect(try shop.read("new.db", "SELECT count(*) FROM note") == "0\n")
    }
}
