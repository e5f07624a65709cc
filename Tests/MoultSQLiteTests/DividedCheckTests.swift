import MoultBasics
import MoultFiles
import TestSupport
import Testing

@testable import MoultSQLite

/// A check that is divided into parts never calls a database sound that SQLite's check finds damaged. If it finds anything
/// unusual, SQLite checks the whole database.
@Suite struct DividedCheckTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func isSound(_ path: String) throws -> Bool {
        let connection = try Connection(path: path, access: .immutable)
        return try DividedCheck(path: path, access: .immutable, deadline: 60, threads: 2, smallest: 0).isSound(
            connection)
    }

    /// Returns whether SQLite's check of the whole database finds a problem or fails.
    private func isFoundWhole(_ path: String) -> Bool {
        do { return try !Connection(path: path, access: .immutable).quickCheck().isEmpty } catch { return true }
    }

    /// Rows with numbers, with texts that fit into a page, and with texts that need separate pages; and deleted rows.
    private static let rows = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
          INSERT INTO a SELECT i, 'name ' || (i * 7919 % 2000), i / 3.0, iif(i % 50, NULL, printf('%.*c', 9000, 'x')) FROM n;
        INSERT INTO b SELECT name, id, note FROM a WHERE id < 900;
        DELETE FROM a WHERE id BETWEEN 300 AND 700;
        """
    private static let tables = """
        CREATE TABLE a(id INTEGER PRIMARY KEY, name TEXT UNIQUE, value REAL, note TEXT); CREATE INDEX value ON a(value, note);
        CREATE TABLE b(name TEXT, number, note, PRIMARY KEY(name, number)) WITHOUT ROWID; CREATE INDEX "i'1" ON b(note);
        """

    @Test(arguments: [
        "\(tables) \(rows)", "PRAGMA page_size = 512; \(tables) \(rows)", "PRAGMA page_size = 65536; \(tables) \(rows)",
        "\(tables) \(rows) CREATE VIRTUAL TABLE words USING fts5(name); INSERT INTO words SELECT name FROM a; ANALYZE;",
        "\(tables) \(rows) DROP TABLE a; CREATE TABLE c AS SELECT * FROM b;",
        "\(tables) CREATE VIEW v AS SELECT 1; CREATE TABLE \"5\"(x); CREATE TABLE \"a'b\"(x UNIQUE);",
        "\(tables) \(rows) CREATE TABLE c(x INTEGER PRIMARY KEY AUTOINCREMENT, y CHECK (y > 0)); INSERT INTO c VALUES(7, 1);",
    ])
    func `the divided check calls a sound database sound`(_ sql: String) throws {
        let path = try scratch.database("a.db", sql)
        #expect(!isFoundWhole(path))
        #expect(try isSound(path))
    }

    /// The divided check does not track the pointer map, so SQLite checks the database.
    @Test(arguments: ["full", "incremental"])
    func `the divided check leaves an auto-vacuum database to SQLite`(_ mode: String) throws {
        let path = try scratch.database("a.db", "PRAGMA auto_vacuum = \(mode); \(Self.tables) \(Self.rows)")
        #expect(!isFoundWhole(path))
        #expect(try !isSound(path))
    }

    /// Damage that only a check of the whole file finds.
    enum Damage: CaseIterable {
        case aFreePageInUse, freePagesForgotten, tooManyFreePages, aBranchOfTwoTables, aTableTwice

        func strike(_ pages: inout Pages) throws {
            switch self {
            // Replaces the number of the first free page that the first page of the free list contains.
            case .aFreePageInUse: pages.set((pages.number(32) - 1) * 4096 + 8, to: pages.root("b"))
            case .freePagesForgotten:
                pages.set(32, to: 0)
                pages.set(36, to: 0)
            case .tooManyFreePages: pages.set(36, to: pages.number(36) + 1)
            case .aBranchOfTwoTables: pages.set(pages.branch("c"), to: pages.number(pages.branch("d")))
            case .aTableTwice: try pages.give(root: "c", to: "d")
            }
        }
    }

    @Test(arguments: Damage.allCases) func `the divided check detects damage that only a check of the whole file finds`(
        _ damage: Damage
    ) throws {
        let path = try scratch.database(
            "a.db",
            """
            CREATE TABLE c(x); CREATE TABLE d(x);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
              INSERT INTO c SELECT printf('%.*c', 2000, 'c') FROM n;
            INSERT INTO d SELECT * FROM c;
            \(Self.tables) \(Self.rows)
            """)
        #expect(try isSound(path))
        var pages = try Pages(path)
        try damage.strike(&pages)
        try pages.write()
        let connection = try Connection(path: path, access: .immutable)
        for table in ["a", "b", "c", "d"] {
            #expect(try connection.quickCheck(ofTable: table) == [], "\(damage): \(table)")
        }
        #expect(try connection.quickCheck() != [], "\(damage)")
        #expect(try !isSound(path), "\(damage)")
    }

    /// If SQLite cannot read the schema, its check reports that as a finding, so the divided check must not throw an
    /// error.
    @Test func `the divided check leaves a database with an unreadable schema to SQLite`() throws {
        let path = try scratch.database("a.db", "\(Self.tables) \(Self.rows) CREATE TABLE c AS SELECT * FROM b;")
        try Shell.must([
            "sqlite3", path,
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET tbl_name = 'b' WHERE name = 'c'",
        ])
        #expect(isFoundWhole(path))
        #expect(try !isSound(path))
    }

    /// Random bytes are changed, mostly in numbers of pages and cells.
    @Test(arguments: 0..<8) func `the divided check never calls a damaged database sound`(seed: Int) throws {
        let made = try scratch.database("a.db", "\(Self.tables) \(Self.rows)")
        let sound = try #require(try Files.read(made, limit: 1 << 24))
        let path = scratch.path("damaged.db")
        var state = UInt64(seed + 1)
        func chance(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
        var found = 0
        for _ in 0..<60 {
            var bytes = sound
            let place = chance(bytes.count / 4096) * 4096 + (chance(4) == 0 ? chance(4096) : chance(16))
            bytes[place] = UInt8(chance(256))
            try Files.remove(path)
            try Files.writeNew(bytes, to: path)
            guard isFoundWhole(path) else { continue }
            found += 1
            #expect(try !isSound(path), "byte \(place) is \(bytes[place])")
        }
        #expect(found > 5)
    }
}

/// The content of a database with pages of 4096 bytes, and the root pages of its tables.
struct Pages {
    private let path: String
    private var bytes: [UInt8]
    private var roots: [String: Int] = [:]

    init(_ path: String) throws {
        self.path = path
        bytes = try #require(try Files.read(path, limit: 1 << 24))
        for row in try Connection(path: path, access: .immutable).query("SELECT name, rootpage FROM sqlite_schema") {
            if case .text(let name) = row[0], case .integer(let root) = row[1] { roots[name] = Int(root) }
        }
    }

    func root(_ table: String) -> Int { roots[table] ?? 0 }

    /// Returns the offset of the last child's page number in the root page, which is an inner page.
    func branch(_ table: String) -> Int { (root(table) - 1) * 4096 + 8 }

    func number(_ place: Int) -> Int { bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } }

    mutating func set(_ place: Int, to number: Int) {
        for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index)) }
    }

    /// Changes the root page in the schema, where its number is one byte.
    mutating func give(root: String, to table: String) throws {
        try Shell.must([
            "sqlite3", path,
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = \(self.root(root)) WHERE name = '\(table)'",
        ])
        bytes = try #require(try Files.read(path, limit: 1 << 24))
    }

    func write() throws {
        try Files.remove(path)
        try Files.writeNew(bytes, to: path)
    }
}
