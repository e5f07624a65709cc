import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A saved plan is untrusted: whatever names the plan contains, `apply` creates and removes only its own transaction.
@Suite(.tags(.thorough)) struct SavedPlanTests {
    let shop: Shop
    private var precious: String { shop.scratch.path("precious") }
    private var plan: String { shop.scratch.path("saved.plan") }

    /// Saves a plan of an update from 1.0.0 to 2.0.0. A directory next to the store and a set in quarantine must not be
    /// affected.
    init() throws {
        shop = try Shop()
        try shop.pack("1.0.0", [.reference("CREATE TABLE food(x);"), .user("CREATE TABLE note(t);")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO note VALUES('DIARY')")
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        try shop.pack("2.0.0", [.reference("CREATE TABLE food(x, y);"), .user("CREATE TABLE note(t);")])
        #expect(try shop.plan("2.0.0", "-o", plan).status == 2)
        try Files.ensureDirectory(precious)
        try Files.writeNew(Array("precious".utf8), to: "\(precious)/file")
    }

    /// Changes the plan, and then applies it.
    private func applyChanged(_ change: (JSON) throws -> JSON) throws -> Shell.Ended {
        let bytes = try #require(try Files.read(plan, limit: 1 << 20))
        try Files.replace(plan, with: Array(change(try JSON(parsing: bytes, source: plan)).pretty.utf8))
        return try shop.moult("apply", "--plan", plan)
    }

    /// Returns everything in the scratch directory except the records of attempts and the plan itself.
    private func everything() throws -> [String] {
        try Tree(shop.scratch.path, times: false).lines.filter {
            !$0.hasPrefix("store/.moult/history.jsonl ") && !$0.hasPrefix("store/.moult/lock ")
                && !$0.hasPrefix("saved.plan ")
        }
    }

    static let names = [
        "../../../precious", "../../../../precious", "..", "../..", ".", "", "./", "/", "a/../../../../precious",
        "../quarantine",
        "../generations", "../current", "a\u{0}b", "\u{0}",
        "a/b", "a\nb", " ", "CACHEDIR.TAG", "-rf", "ä", "\u{202E}x",
        "20261122140008-e94e6703/../../../../precious", "20261122140008-e94e6703/", "20261122140008-E94E6703",
        "20261122140008-e94e67031", "2026112214000-e94e6703", String(repeating: "a", count: 300),
    ]

    @Test(arguments: names) func `a plan with an invalid name is refused and changes nothing`(_ name: String)
        throws
    {
        let before = try everything()
        let ended = try applyChanged { $0.setting("plan", to: .string(name)) }
        #expect([3, 4, 64].contains(ended.status), "\(ended.output)\(ended.errors)")
        #expect(try everything() == before)
        #expect(try shop.version() == "1.0.0")
        #expect(try shop.databases(with: "DIARY").count == 1)
    }

    @Test(arguments: names)
    func `a plan with an invalid generation changes nothing outside the store`(_ name: String) throws {
        func outside() throws -> [String] { try everything().filter { !$0.hasPrefix("store") } }
        let before = try outside()
        let ended = try applyChanged { json in
            json.setting("to", to: (json["to"] ?? [:]).setting("generation", to: .string(name)))
        }
        #expect([0, 3, 4, 64].contains(ended.status), "\(ended.output)\(ended.errors)")
        #expect(try outside() == before)
        #expect(try shop.version() == (ended.status == 0 ? "2.0.0" : "1.0.0"))
        #expect(try shop.moult("verify").status == 0)
        #expect(try shop.databases(with: "DIARY").count == 1)
    }

    @Test(arguments: [JSON.integer(7), .null, ["a"], [:], true])
    func `a plan whose name is not a string is refused and changes nothing`(_ name: JSON) throws {
        let before = try everything()
        let ended = try applyChanged { $0.setting("plan", to: name) }
        #expect([1, 3, 4, 64].contains(ended.status), "\(ended.errors)")
        #expect(try everything() == before)
    }

    @Test func `apply does not remove a directory that it did not create`() throws {
        let bytes = try #require(try Files.read(plan, limit: 1 << 20))
        let name = try #require(JSON(parsing: bytes, source: plan)["plan"]?.string)
        let directory = shop.path(".moult/transactions/\(name)")
        try Files.ensureDirectory(directory)
        try Files.writeNew(Array("precious".utf8), to: "\(directory)/file")
        let ended = try shop.moult("apply", "--plan", plan)
        #expect(try Files.facts("\(directory)/file") != nil, "exit \(ended.status): \(ended.errors)")
    }

    @Test func `a link in place of the transaction directory is not followed`() throws {
        let bytes = try #require(try Files.read(plan, limit: 1 << 20))
        let name = try #require(JSON(parsing: bytes, source: plan)["plan"]?.string)
        let directory = shop.path(".moult/transactions/\(name)")
        try Files.symlink(to: precious, at: directory)
        let ended = try shop.moult("apply", "--plan", plan)
        #expect(ended.status == 1 && ended.errors.contains("\(directory) is a symbolic link"), "\(ended)")
        #expect(try Files.facts("\(precious)/file") != nil)
        #expect(try Files.list(precious) == ["file"])
    }

    @Test func `an unchanged plan can be applied only once`() throws {
        #expect(try shop.moult("apply", "--plan", plan).status == 0)
        #expect(try shop.version() == "2.0.0")
        let before = try everything()
        #expect(try shop.moult("apply", "--plan", plan).status == 4)
        #expect(try everything() == before)
    }
}
