import MoultFiles
import TestSupport
import Testing

/// `inspect` and `diff` exit with 1 if SQLite finds a database damaged.
@Suite struct DamagedFileVerdictTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private static let sql = """
        PRAGMA page_size = 512;
        CREATE TABLE word(w TEXT PRIMARY KEY, n) WITHOUT ROWID;
        CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT, n);
        CREATE INDEX food_name ON food(name);
        WITH n(i) AS (VALUES(100) UNION ALL SELECT i + 1 FROM n WHERE i < 399) INSERT INTO word SELECT 'word' || i, i FROM n;
        INSERT INTO food SELECT n, w, n FROM word;
        """

    @Test func `inspect agrees with integrity_check for each changed bit`() throws {
        try Shell.must(["sqlite3", scratch.path("a.db")], input: Self.sql)
        let sound = try #require(try Files.read(scratch.path("a.db"), limit: 1 << 24))
        var random = SeededRandom(10)
        var damaged = 0
        for number in 0..<60 {
            let offset = Int.random(in: 100..<sound.count, using: &random)
            var bytes = sound
            bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            try scratch.write("b.db", bytes)
            let known: Shell.Ended = try scratch.run("sqlite3 b.db 'PRAGMA integrity_check'")
            let isSound = known.output == "ok\n"
            let ended: Shell.Ended = try scratch.run("moult inspect b.db")
            #expect(ended.status == (isSound ? 0 : 1), "number \(number), byte \(offset): \(known) \(ended)")
            if !isSound { damaged += 1 }
            // Only `inspect` reports damage that leaves all rows readable.
            let quick: Shell.Ended = try scratch.run("sqlite3 b.db 'PRAGMA quick_check'")
            let compared: Shell.Ended = try scratch.run("moult diff a.db b.db")
            #expect(
                quick.output == "ok\n" ? [0, 2].contains(compared.status) : compared.status == 1,
                "number \(number), byte \(offset): \(quick) \(compared)")
        }
        #expect(damaged > 5)
    }

    @Test(arguments: ["verify -q -s store", "status --deep -q -s store", "inspect -q store/app.db"])
    func `verify, status --deep and inspect print only findings with -q`(check: String) throws {
        try Shell.must(["sqlite3", scratch.path("app.db")], input: Self.sql)
        try scratch.must("moult pack -q app.db --kind app=user --product local.quiet -o .")
        try scratch.must("moult apply -q --create -s store quiet-1.0.0.json")
        let sound: Shell.Ended = try scratch.run("moult \(check)")
        #expect(sound.status == 0 && sound.output.isEmpty && sound.errors.isEmpty, "\(sound)")
        let bytes = try #require(try Files.read(scratch.path("store/app.db"), limit: 1 << 24))
        try scratch.write("store/app.db", [UInt8](repeating: 0, count: 100) + bytes.dropFirst(100))
        let damaged: Shell.Ended = try scratch.run("moult \(check)")
        #expect(damaged.status == 1 && (damaged.output + damaged.errors).contains("app.db"), "\(damaged)")
    }
}
