import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The budget of the quarantine: nothing but caches is removed for it, so above it no update keeps more.
@Suite struct QuarantineBudgetTests {
    let shop: Shop

    /// Two releases of a shared database with one row each, and a row of the app that the second one does not have.
    init() throws {
        shop = try Shop()
        for number in 1...3 {
            try shop.pack(
                "\(number).0.0",
                [.shared("CREATE TABLE item(name TEXT PRIMARY KEY); INSERT INTO item VALUES('shipped \(number)');")])
        }
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('mine')")
    }

    private func limit(_ text: String) throws {
        try Settings.rewrite(
            StoreLayout(root: shop.store), "quarantine", JSON(parsing: Array(text.utf8), as: .draft, source: "test"))
    }

    private func sets() throws -> [String] { try Files.list("\(shop.store)/.moult/quarantine").sorted() }

    @Test(arguments: [
        (#"{"count": 0}"#, "it has 1 set, and may have 0"), (#"{"size": 10}"#, ", and may have 10 B"),
    ])
    func `an update that would keep more is refused before the decision`(_ budget: String, _ why: String) throws {
        try limit(budget)
        let before = try shop.tree()
        let refused = try shop.apply("2.0.0")
        #expect(refused.status == 3, "\(refused)")
        #expect(
            refused.errors.contains("moult: error: the update would keep more in quarantine than its budget allows: "))
        #expect(refused.errors.contains(why), "\(refused.errors)")
        #expect(refused.errors.contains("moult quarantine --store"), "\(refused.errors)")
        #expect(try shop.tree() == before)
        #expect(try sets() == [])
        // An update that keeps nothing is not refused.
        try shop.sql("app.db", "DELETE FROM item WHERE name = 'mine'")
        try shop.install("2.0.0")
    }

    @Test func `monitoring warns above the budget, and a removed set makes room`() throws {
        try shop.install("2.0.0")
        #expect(try sets().count == 1)
        #expect(try shop.moult("status", "--nagios").status == 1)  // The row that was not carried over.
        try limit(#"{"count": 0}"#)
        let status = try shop.moult("status")
        #expect(
            status.output.contains("the quarantine is over its budget: it has 1 set, and may have 0"), "\(status)")
        try shop.sql("app.db", "INSERT INTO item VALUES('again')")
        #expect(try shop.apply("3.0.0").status == 3)
        try shop.must("quarantine", "--remove", try sets()[0])
        try limit(#"{"count": 1}"#)
        try shop.install("3.0.0")
        #expect(try sets().count == 1)
    }

    @Test func `a set may be too old`() throws {
        try shop.install("2.0.0")
        try Shell.must(
            ["sed", "-i", #"s/"time": *"[^"]*"/"time": "2020-01-02T03:04:05Z"/"#]
                + sets().map { "\(shop.store)/.moult/quarantine/\($0)/set.json" })
        #expect(try !shop.moult("status").output.contains("over its budget"))
        try limit(#"{"age": 86400}"#)
        #expect(
            try shop.moult("status").output.contains("the quarantine is over its budget: its oldest set has been there")
        )
    }

    @Test func `caches are removed for the budget, oldest first`() throws {
        let cached = try Shop()
        try cached.pack("1.0.0", [.cache("CREATE TABLE c(x)")])
        try cached.install("1.0.0")
        try Settings.rewrite(
            StoreLayout(root: cached.store), "quarantine",
            JSON(parsing: Array(#"{"count": 1}"#.utf8), as: .draft, source: ""))
        for _ in 1...3 {
            try Files.replace(cached.path("cache.db"), with: Array("no database".utf8))
            try cached.must("reset", "cache")
        }
        try cached.pack("2.0.0", [.cache("CREATE TABLE c(y)")])
        try cached.install("2.0.0")
        #expect(try Files.list("\(cached.store)/.moult/quarantine").filter { !CacheTag.isTag($0) }.count <= 1)
    }
}
