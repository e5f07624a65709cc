import MoultFiles
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

/// The fast check agrees with SQLite's check for databases of all kinds in which one bit was changed.
@Suite struct FlippedBitTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// The number of changed bits, some in each database. MOULT_FLIPPED_BITS=5000 is the documented number.
    static let count = getenv("MOULT_FLIPPED_BITS").flatMap { Int(String(cString: $0)) } ?? 1000
    private static let flips = 20

    private static let tables = [
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c)",
        "CREATE TABLE t(a, b, c)",
        "CREATE TABLE t(a TEXT PRIMARY KEY, b, c) WITHOUT ROWID",
        "CREATE TABLE t(a, b, c, PRIMARY KEY(b, a)) WITHOUT ROWID",
        "CREATE TABLE t(a TEXT COLLATE NOCASE, b, c, PRIMARY KEY(a DESC, b)) WITHOUT ROWID",
        "CREATE TABLE t(a INTEGER PRIMARY KEY DESC, b, c)",
        "CREATE TABLE t(a TEXT UNIQUE, b, c)",
        "CREATE TABLE t(a INT, b TEXT, c ANY) STRICT",
        "CREATE TABLE t(a INT NOT NULL, b CHECK(b <> ''), c)",
        "CREATE TABLE t(a, b, c, d AS (a || b), e AS (c) STORED)",
    ]
    private static let indexes = [
        "", "", "CREATE INDEX i ON t(b)", "CREATE INDEX i ON t(b DESC, c)", "CREATE UNIQUE INDEX i ON t(b, c, a)",
        "CREATE INDEX i ON t(b COLLATE NOCASE)", "CREATE INDEX i ON t(b) WHERE c > 100",
        "CREATE INDEX i ON t(lower(b))",
        "CREATE INDEX i ON t(c); CREATE INDEX j ON t(a, b)",
    ]
    private static let settings = ["", "PRAGMA auto_vacuum = 1;", "PRAGMA encoding = 'UTF-16le';"]

    /// Returns a random script for a database with several pages of each structure, with entries that need separate
    /// pages, and with free pages.
    private func make(_ random: inout SeededRandom) -> String {
        let wide = random.chance(30) ? 900 : 20
        return """
            PRAGMA synchronous = OFF; PRAGMA page_size = 512; \(random.pick(Self.settings)) \(random.pick(Self.tables)); \(random.pick(Self.indexes));
            WITH n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 120)
              INSERT INTO t(a, b, c) SELECT i * 7919 % 1000 + 1, 'w' || (i * 31 % 97) || hex(zeroblob(i % 7 * \(wide) / 7)), i FROM n;
            CREATE TABLE other(x); INSERT INTO other SELECT c FROM t; CREATE INDEX other_x ON other(x);
            \(random.chance(50) ? "DELETE FROM t WHERE c % 3 = 0;" : "")
            \(random.chance(20) ? "CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f SELECT b FROM t;" : "")
            """
    }

    @Test func `a database that SQLite finds damaged is never called sound`() throws {
        var random = SeededRandom(19)
        var damaged = 0
        for number in 0..<Self.count / Self.flips {
            try scratch.database("a.db", make(&random))
            let sound = try #require(try Files.read(scratch.path("a.db"), limit: 1 << 24))
            try Files.remove(scratch.path("a.db"))
            for _ in 0..<Self.flips {
                let offset = Int.random(in: 100..<sound.count, using: &random)
                var bytes = sound
                bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                let path = try scratch.write("b.db", bytes)
                // Both checks report a database whose schema cannot be read as not a database.
                let (known, found) = (findings(path) { try $0.integrityCheck() }, findings(path) { try $0.fullCheck() })
                #expect(known.isEmpty == found.isEmpty, "number \(number), byte \(offset): \(known) \(found)")
                if !known.isEmpty { damaged += 1 }
            }
        }
        // Many bits are in values, where a change cannot be detected.
        #expect(damaged > Self.count / 10)
    }

    private func findings(_ path: String, _ check: (Connection) throws -> [String]) -> [String] {
        do {
            let connection = try Connection(path: path, access: .readWrite)
            let findings = try check(connection)
            try connection.close()
            return findings
        } catch { return ["\(error)"] }
    }

    /// A key in a table WITHOUT ROWID is changed, so that later rows are no longer found by their keys.
    @Test func `a changed key of a table WITHOUT ROWID is detected`() throws {
        let path = try scratch.database(
            "a.db",
            """
            CREATE TABLE word(w TEXT PRIMARY KEY, n) WITHOUT ROWID;
            WITH n(i) AS (VALUES(100) UNION ALL SELECT i + 1 FROM n WHERE i < 399) INSERT INTO word SELECT 'word' || i, i FROM n;
            """)
        let bytes = try #require(try Files.read(path, limit: 1 << 24))
        let key = try #require(bytes.firstRange(of: Array("word250".utf8)))
        try scratch.damage("a.db", at: key.lowerBound, with: [UInt8(ascii: "g")])
        let connection = try Connection(path: path, access: .readOnly)
        let known = try connection.integrityCheck()
        #expect(known == ["row not in PRIMARY KEY order for word"])
        #expect(try connection.fullCheck() == known)
    }
}
