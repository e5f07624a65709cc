import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A shared database that does not load is recreated with the content of the installed release.
@Suite struct SharedResetTests {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store
    let first: String
    var pantry: String { scratch.path("store/pantry.db") }

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: scratch.path("store"))
        first = try Self.release(1, maker)
        try store.updateBlocking(to: first)
        try Shell.must(["sqlite3", pantry, "INSERT INTO food SELECT id + 100, 'mine', 1 FROM food"])
    }

    private static func release(_ number: Int, _ maker: ReleaseMaker) throws -> String {
        let food = """
            CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT, mine INTEGER NOT NULL DEFAULT 0);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
            INSERT INTO food(id, name) SELECT i, 'shipped \(number)' FROM n;
            """
        let preserve: JSON.Member = .init("preserve", [["table": "food", "where": "mine = 1"]])
        return try maker.make(
            "\(number).0.0", sequence: number,
            [.shared("pantry", food, more: [preserve]), .reference("codes", "CREATE TABLE codes(x);")])
    }

    private func rows() throws -> String {
        try Shell.must([
            "sqlite3", pantry, "SELECT count(*), name FROM food GROUP BY name; SELECT release FROM moult_release",
        ])
    }

    @Test(arguments: Broken.allCases)
    func `a reset recreates a shared database with the shipped content`(_ broken: Broken) throws {
        try broken.make("pantry.db", in: store.directory)
        let recovered = try store.reset("pantry", settingUserDataAside: true)
        #expect(try rows() == "50|shipped 1\n1.0.0\n")
        if broken.isReadable {
            let salvaged = try #require(recovered.salvaged)
            #expect(try Shell.must(["sqlite3", salvaged, "SELECT count(*) FROM food WHERE mine = 1"]) == "50\n")
        }
        // The release is still installed, so nothing changes, and the next release is installed as usual.
        #expect(try store.isCurrent(first))
        try Shell.must(["sqlite3", pantry, "INSERT INTO food VALUES(900, 'new mine', 1)"])
        try store.updateBlocking(to: Self.release(2, maker))
        #expect(try rows() == "1|new mine\n50|shipped 2\n2.0.0\n")
    }

    /// A shared database contains user data, so `reset` requires `settingUserDataAside`.
    @Test func `a shared database is reset only with settingUserDataAside`() throws {
        let before = try Tree(store.directory)
        let error = #expect(throws: MoultError.self) { try store.reset("pantry") }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "pantry contains user data")
        #expect(try Tree(store.directory) == before)
    }

    /// The file may contain rows of the user, so the update fails instead of replacing it.
    @Test func `an update does not replace an unreadable shared database`() throws {
        try Broken.damagedSchema.make("pantry.db", in: store.directory)
        let before = try Files.facts(pantry)
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: Self.release(2, maker)) }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "the shared database \(pantry) cannot be read")
        #expect(try Files.facts(pantry) == before)
    }
}
