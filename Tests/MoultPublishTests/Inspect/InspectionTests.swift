import MoultBasics
import MoultFiles
import MoultPublish
import MoultSQLite
import MoultTrust
import StepKit
import TestSupport
import Testing

/// The inspection of one database.
@Suite struct InspectionTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private let sql = """
        PRAGMA application_id = 7; PRAGMA user_version = -3;
        CREATE TABLE food (id INTEGER PRIMARY KEY, name TEXT, kcal REAL);
        CREATE INDEX food_name ON food (name);
        INSERT INTO food VALUES (1, 'bread', 250), (2, 'milk', 64);
        CREATE VIRTUAL TABLE words USING fts5(word); INSERT INTO words VALUES ('a');
        """

    @Test func `inspect shows the content of a database`() throws {
        let path = try scratch.database("food.db", sql)
        let found = try #require(try Inspection(Subject.open(path)).databases.first?.found)
        #expect((found.identity.applicationID, found.identity.userVersion) == (7, -3))
        #expect(found.sha256 == (try SHA256.digest(ofFileAt: path).hex))
        #expect(found.size == found.identity.pageSize * found.identity.pageCount)
        #expect(found.tables.map(\.name) == ["food", "words"])
        #expect(found.tables.map(\.rows) == [2, 1])
        #expect(found.tables.map(\.columns) == [["id", "name", "kcal"], ["word"]])
        #expect(found.tables.map(\.isVirtual) == [false, true])
        // A manifest contains exactly this value, and an update compares the database with it.
        let shape = try SchemaShape(madeBy: sql)
        #expect(found.schemaDigest == "sha256:\(try SHA256.digest(of: Array(shape.canonicalText.utf8)).hex)")
        #expect(!found.isWAL)
    }

    @Test func `inspect lists a full-text index whose rows cannot be counted`() throws {
        let path = try scratch.database("food.db", "CREATE VIRTUAL TABLE words USING fts4(word, content=\"\")")
        let found = try #require(try Inspection(Subject.open(path)).databases.first?.found)
        #expect(found.tables.map(\.name) == ["words"])
        #expect(found.tables.map(\.rows) == [nil])
        #expect(found.tables.map(\.obstacle) == ["it stores no text"])
    }

    @Test func `a WAL next to the inspected database is read and not changed`() throws {
        let path = scratch.path("food.db")
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("pragma journal_mode = wal"); c.executescript(sys.argv[2])
            os._exit(0)
            """, path, sql,
        ])
        let before = try Tree(scratch.path)
        let found = try #require(try Inspection(Subject.open(path)).databases.first?.found)
        #expect(found.tables.map(\.rows) == [2, 1])
        #expect(found.isWAL)
        #expect(found.sidecars.map(\.name) == ["food.db-wal", "food.db-shm"])
        #expect(try Tree(scratch.path) == before)
    }

    @Test func `a truncated file is refused`() throws {
        let path = try scratch.database("food.db", sql)
        let file = try Descriptor(path, .write)
        try file.truncate(to: 5000)
        try file.close()
        #expect(throws: MoultError.self) { try Inspection(Subject.open(path)) }
    }

    @Test func `a truncated last page is reported`() throws {
        let path = try scratch.database("food.db", sql)
        #expect(try Inspection(Subject.open(path)).isSound)
        let file = try Descriptor(path, .write)
        let size = try file.facts().size - 100
        try file.truncate(to: size)
        try file.close()
        // SQLite reads the page as if it ended with zeros.
        let inspection = try Inspection(Subject.open(path))
        #expect(!inspection.isSound)
        #expect(
            inspection.databases.first?.found?.findings.first
                == "it is truncated: \(size) bytes are not a multiple of the page size 4096")
    }

    @Test func `inspect suggests the nearest name for an unknown database`() throws {
        let path = try scratch.database("food.db", sql)
        let error = #expect(throws: MoultError.self) { try Inspection(Subject.open(path), only: ["fod.db"]) }
        #expect(error?.description.contains("Did you mean \"food.db\"") == true, "\(error?.description ?? "")")
    }
}
