import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Scenario 3 without a release: an app's own cache is replaced if its schema is not the expected one.
@Suite struct AppCacheTests {
    let scratch: Scratch
    var path: String { scratch.path("thumbs.db") }

    init() throws { scratch = try Scratch() }

    static let schema = """
        CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB);
        CREATE INDEX by_image ON thumb(image);
        """

    private func sqlite(_ sql: String) throws -> String { try Shell.must(["sqlite3", path, sql]) }

    @Test func `a cache is created once and then kept`() throws {
        #expect(try Store.cache(at: path, schema: Self.schema) == .fresh("the file did not exist"))
        _ = try sqlite("INSERT INTO thumb(image) VALUES(x'01')")
        let same = "create index \"by_image\" on thumb ( image )"
        #expect(throws: MoultError.self) { try Store.cache(at: path, schema: same) }
        let written = "create table [thumb] (\"id\" integer primary key, image blob); \(same);"
        #expect(try Store.cache(at: path, schema: written) == .ready)
        #expect(try sqlite("SELECT count(*) FROM thumb") == "1\n")
        #expect(try Files.list(scratch.path) == ["thumbs.db"])
    }

    @Test func `a cache with a different schema is replaced by an empty one`() throws {
        _ = try Store.cache(at: path, schema: Self.schema)
        _ = try sqlite("PRAGMA journal_mode = WAL; INSERT INTO thumb(image) VALUES(x'01')")
        let next = Self.schema + "ALTER TABLE thumb ADD COLUMN width INTEGER;"
        #expect(try Store.cache(at: path, schema: next) == .fresh("table thumb: column \"width\" is missing"))
        #expect(try sqlite("SELECT count(*), max(width) FROM thumb") == "0|\n")
        #expect(try Store.cache(at: path, schema: next) == .ready)
        // After a downgrade, the app cannot read the cache, which is replaced again.
        #expect(
            try Store.cache(at: path, schema: Self.schema) == .fresh("table thumb: column \"width\" is not expected"))
        #expect(try Files.list(scratch.path) == ["thumbs.db"])
    }

    @Test func `user_version and application_id are compared if the schema sets them`() throws {
        let numbered = Self.schema + "PRAGMA user_version = 4; PRAGMA application_id = 77;"
        _ = try Store.cache(at: path, schema: numbered)
        #expect(try sqlite("PRAGMA user_version; PRAGMA application_id") == "4\n77\n")
        #expect(try Store.cache(at: path, schema: numbered) == .ready)
        #expect(try Store.cache(at: path, schema: Self.schema) == .ready)
        let next = Self.schema + "PRAGMA user_version = 5; PRAGMA application_id = 77;"
        #expect(try Store.cache(at: path, schema: next) == .fresh("its user_version is 4, not 5"))
    }

    @Test(arguments: Broken.allCases)
    func `a cache that cannot be read is replaced by an empty one`(_ broken: Broken) throws {
        _ = try Store.cache(at: path, schema: Self.schema)
        _ = try sqlite(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO thumb(image) SELECT zeroblob(50) FROM n"
        )
        try broken.make("thumbs.db", in: scratch.path)
        guard case .fresh = try Store.cache(at: path, schema: Self.schema) else {
            Issue.record("the cache was taken for sound")
            return
        }
        #expect(try sqlite("SELECT count(*) FROM thumb") == "0\n")
        #expect(try sqlite("PRAGMA integrity_check") == "ok\n")
        #expect(try Files.list(scratch.path) == ["thumbs.db"])
        #expect(try Store.cache(at: path, schema: Self.schema) == .ready)
    }

    @Test func `a failure to remove the old cache is an error`() throws {
        _ = try Store.cache(at: path, schema: Self.schema)
        let locked = try Shell.run(["chattr", "+i", path])
        if locked.status != 0 { try Test.cancel("the file cannot be made immutable: \(locked.errors)") }
        defer { _ = try? Shell.run(["chattr", "-i", path]) }
        let error = #expect(throws: MoultError.self) { try Store.cache(at: path, schema: "CREATE TABLE other(x)") }
        #expect(error?.what.contains(path) == true)
        // No row of the old cache is lost.
        #expect(try sqlite("SELECT count(*) FROM thumb") == "0\n")
    }

    @Test func `an invalid schema is reported as an error of the schema`() throws {
        let error = #expect(throws: MoultError.self) { try Store.cache(at: path, schema: "CREATE TABEL thumb(x)") }
        #expect(error?.what == "the schema of the cache cannot be created")
        #expect(try Files.list(scratch.path).isEmpty)
    }

    /// The next call removes the leftovers of a crash.
    @Test func `leftovers of an interrupted call are removed`() throws {
        for name in [".thumbs.db.moult-new", ".thumbs.db.moult-old", ".thumbs.db.moult-old-wal"] {
            try Files.writeNew(Array("rubbish".utf8), to: scratch.path(name))
        }
        #expect(try Store.cache(at: path, schema: Self.schema) == .fresh("the file did not exist"))
        #expect(try Files.list(scratch.path) == ["thumbs.db"])
    }

    /// Many processes call at the same time: exactly one of them gets the new cache, and all rows written after that
    /// stay.
    @Test func `only one of many processes recreates the cache`() async throws {
        try Files.writeNew(Array("no database".utf8), to: path)
        let path = path
        let states = try await withThrowingTaskGroup(of: CacheState.self) { group in
            for _ in 0..<8 { group.addTask { try Store.cache(at: path, schema: Self.schema) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(states.filter { $0 == .ready }.count == 7)
        #expect(states.filter { $0 == .fresh("the file has only 11 bytes") }.count == 1)
    }
}
