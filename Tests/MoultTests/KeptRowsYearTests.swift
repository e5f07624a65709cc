import Moult
import MoultBasics
import MoultFiles
import MoultSQLite
import TestSupport
import Testing

/// A store that is updated four times a day, each time after the app has written a row that no rule preserves.
@Suite struct KeptRowsYearTests {
    @Test func `the quarantine of a week is small, and has each row`() throws { try update(28) }

    @Test(.tags(.thorough, .slow)) func `the quarantine of a year is small, and has each row`() throws {
        try update(1_460)
    }

    private func update(_ count: Int) throws {
        let scratch = try Scratch()
        let store = Store(at: try scratch.directory("store"))
        let maker = try ReleaseMaker(in: scratch.path("releases"))
        let sql = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT); INSERT INTO note VALUES(1, 'shipped"
        let releases = try (1...2).map {
            try maker.make("\($0).0.0", sequence: $0, [.shared("note", "\(sql) \($0)');", more: [])])
        }
        try store.updateBlocking(to: releases[1])
        let path = scratch.path("store/note.db")
        for number in 0..<count {
            // The app chooses the same key each time.
            let app = try Connection(path: path, access: .readWrite)
            _ = try app.query("INSERT INTO note VALUES(2, ?1)", [.text("row \(number)")])
            try app.close()
            try store.updateBlocking(to: releases[number % 2], follow: .match)
        }
        let root = scratch.path("store/.moult/quarantine")
        let sets = try Files.list(root).map { "\(root)/\($0)" }
        var found: [String: Int] = [:]
        for set in sets {
            let record = try #require(try QuarantineRecord(in: set))
            #expect(record.reason == .replaced && record.isRows && ["1.0.0", "2.0.0"].contains(record.release))
            let rows = try Connection(path: "\(set)/note.db", access: .immutable)
            let texts = try rows.query("SELECT text FROM note")
            let hasOrigins = try rows.int("SELECT count(*) FROM sqlite_schema WHERE name = 'moult_kept'") == 1
            let named =
                try hasOrigins
                ? rows.int(
                    """
                    SELECT count(*) FROM moult_kept JOIN note ON note.rowid = "row" WHERE "table" = 'note'
                    AND release IN ('1.0.0', '2.0.0') AND reason = 'replaced' AND time != '' AND "set" != ''
                    """) : 1
            try rows.close()
            #expect(texts.count == Int(named) && record.rows?.values.reduce(0, +) == texts.count, "\(set)")
            for case .text(let text)? in texts.map(\.first) { found[text, default: 0] += 1 }
        }
        #expect(found == Dictionary(uniqueKeysWithValues: (0..<count).map { ("row \($0)", 1) }))
        let used = try Shell.must(["du", "-s", "--block-size=1", root]).prefix { $0 != "\t" }
        let bytes = try #require(Int(used))
        #expect(bytes <= 1_000_000 && sets.count <= 17, "\(bytes) bytes in \(sets.count) sets")
        print("\(count) updates: \(bytes) bytes in \(sets.count) sets")
    }
}
