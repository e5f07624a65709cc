import MoultBasics
import TestSupport
import Testing

/// Rows of the app that an update leaves behind: the operator hears of them each time, also from a timer.
@Suite struct LeavingRowsTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private func release(_ version: String, _ preserve: [JSON] = []) throws {
        try shop.pack(
            version, [.shared("CREATE TABLE item(name TEXT); INSERT INTO item VALUES('\(version)');", preserve)])
    }

    private static let sentence = "app: 2 rows that the new content does not have are in quarantine"

    @Test func `rows that leave the file are a warning with -q, in JSON and in monitoring, each time`() throws {
        try release("1.0.0")
        try shop.install("1.0.0")
        #expect(try shop.moult("status", "--nagios").status == 0)
        for version in ["2.0.0", "3.0.0"] {
            try shop.sql("app.db", "INSERT INTO item VALUES('mine'), ('mine, too')")
            try release(version)
            if version == "2.0.0" {
                let ended = try shop.apply(version, "-q")
                #expect(ended.status == 0 && ended.output == "", "\(ended)")
                let advice = "moult quarantine --store \(shop.store)"
                #expect(ended.errors == "moult: warning: \(Self.sentence); see it with: \(advice)\n", "\(ended)")
            } else {
                let lines = try shop.apply(version, "--json").output.split(separator: "\n")
                let events = try lines.map { try JSON(parsing: String($0), source: "event") }
                let warning = try #require(events.first { $0["event"] == "warning" }?["message"]?.string)
                #expect(warning.hasPrefix(Self.sentence), "\(warning)")
            }
            let nagios = try shop.moult("status", "--nagios")
            #expect(nagios.status == 1, "\(nagios)")
            let rows = version == "2.0.0" ? 2 : 4
            #expect(
                nagios.output.contains("app: \(rows) rows that an update did not carry over are in quarantine"),
                "\(nagios)")
            let sets = try Shop.last(shop.moult("status", "--json"))["uncarried"]?.array
            #expect(sets?.map { $0["rows"] } == Array(repeating: ["item": 2], count: rows / 2))
            #expect(try shop.moult("status").output.contains("app: \(rows) rows that an update did not carry over"))
        }
        // The operator has seen them.
        try shop.must("quarantine", "--remove", "--older-than", "0", "--user-data")
        #expect(try shop.moult("status", "--nagios").status == 0)
        #expect(try Shop.last(shop.moult("status", "--json"))["uncarried"] == nil)
    }

    @Test func `an update that carries every row, or only replaces shipped ones, gives no warning`() throws {
        try release("1.0.0", [["table": "item", "where": "name LIKE 'm%'"]])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('mine')")
        try release("2.0.0", [["table": "item", "where": "name LIKE 'm%'"]])
        let ended = try shop.apply("2.0.0", "-q")
        #expect(ended.status == 0 && ended.errors == "", "\(ended)")
        #expect(try shop.moult("status", "--nagios").status == 0)
    }

    @Test func `rows that leave the file in a rollback are a warning, too`() throws {
        try release("1.0.0")
        try release("2.0.0")
        try shop.install("1.0.0")
        try shop.install("2.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('mine'), ('mine, too')")
        let ended = try shop.moult("rollback", "-q")
        #expect(ended.status == 0 && ended.errors.contains("warning: \(Self.sentence)"), "\(ended)")
        #expect(try shop.moult("status", "--nagios").status == 1)
    }
}
