import MoultBasics
import MoultFiles
import MoultSandbox
import TestSupport
import Testing

/// A database is damaged in hundreds of ways, which are the same in each run. Each results in a report or a refusal,
/// and a file that SQLite's check finds damaged is never called sound.
@Suite struct DamagedDatabaseTests {
    static let sql = """
        PRAGMA page_size = 512; PRAGMA auto_vacuum = 0;
        CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT UNIQUE, note BLOB, CHECK(id > 0));
        CREATE TABLE kind(code TEXT PRIMARY KEY, food REFERENCES food) WITHOUT ROWID;
        CREATE INDEX by_note ON food(note, name DESC); CREATE INDEX part ON food(name) WHERE id > 50;
        CREATE VIEW both AS SELECT * FROM food JOIN kind ON food = id;
        CREATE VIRTUAL TABLE words USING fts5(name);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
        INSERT INTO food SELECT i, 'food ' || i, CASE i % 9 WHEN 0 THEN zeroblob(2000) ELSE hex(i * 7919) END FROM n;
        INSERT INTO kind SELECT 'k' || id, id FROM food; INSERT INTO words SELECT name FROM food;
        DELETE FROM food WHERE id BETWEEN 30 AND 40;
        """

    /// Damages a byte, a header or a page, overwrites several bytes, or truncates the file.
    static func damage(_ bytes: inout [UInt8], _ numbers: inout SeededRandom) {
        let page = 512
        let pages = bytes.count / page
        let at = Int.random(in: 0..<bytes.count, using: &numbers)
        let (one, two) = (Int.random(in: 0..<pages, using: &numbers), Int.random(in: 0..<pages, using: &numbers))
        switch Int.random(in: 0..<8, using: &numbers) {
        case 0: bytes[at] = .random(in: 0...255, using: &numbers)
        case 1: bytes[at] ^= 1 << Int.random(in: 0..<8, using: &numbers)
        // The first bytes of a page contain its type and the offsets of its cells.
        case 2: bytes[one * page + Int.random(in: 0..<12, using: &numbers)] = .random(in: 0...255, using: &numbers)
        case 3: bytes[Int.random(in: 16..<100, using: &numbers)] = .random(in: 0...255, using: &numbers)
        case 4: for offset in 0..<page { bytes[one * page + offset] = bytes[two * page + offset] }
        case 5: for offset in 0..<page { bytes[one * page + offset] = .random(in: 0...255, using: &numbers) }
        case 6: for offset in at..<min(at + 16, bytes.count) { bytes[offset] = 0xFF }
        default: bytes.removeLast(Int.random(in: 1...page * 2, using: &numbers))
        }
    }

    @Test(.tags(.sampled), arguments: (0..<8).sampled(2))
    func `random damage is detected and does not crash the checking process`(round: Int) throws {
        let examined = try Examined(Self.sql)
        let sound = try #require(try Files.read(examined.validation.path, limit: 1 << 24))
        #expect(try examined.report().findings == [])
        var validation = examined.validation
        validation.wantsIdentity = true
        validation.wantsForeignKeys = true
        validation.processor = 10
        validation.queries = [
            "SELECT count(*), max(note) FROM both", "SELECT count(*) FROM words WHERE words MATCH 'food'",
        ]
        var numbers = SeededRandom(round)
        var (exams, paths): ([Validation], [String]) = ([], [])
        for number in 0..<40 {
            var bytes = sound
            for _ in 0...Int.random(in: 0..<3, using: &numbers) { Self.damage(&bytes, &numbers) }
            validation.path = examined.scratch.path("\(number).db")
            try Files.writeNew(bytes, to: validation.path)
            exams.append(validation)
            paths.append(validation.path)
        }
        let examiner = try Validator.process(BuiltMoult.path())
        for validation in exams {
            let report: ValidationReport
            do {
                report =
                    try examiner.examine([validation], scratch: examined.scratch.path("aside")).first
                    ?? ValidationReport()
            } catch let error as MoultError {
                // A crash of SQLite would give a different error code.
                #expect(error.code == .validation)
                continue
            }
            let isSound = report.isOpen && !report.isWAL && report.findings == [] && report.failure == nil
            guard isSound else { continue }
            let known = try Shell.run(["sqlite3", validation.path, "PRAGMA integrity_check"])
            #expect(known.output == "ok\n", "\(validation.path) of round \(round)")
        }
    }
}
