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

    /// The size of a store, and the number of system calls of commands that change nothing.
    private struct Cost {
        let bytes: Int
        let calls: [String: Int]

        init(_ scratch: Scratch, installed manifest: String) throws {
            let size = try scratch.must("du -s --block-size=1 store").prefix { $0 != "\t" }
            bytes = try #require(Int(size))
            var calls: [String: Int] = [:]
            for verb in ["status", "apply -q \(manifest)"] {
                let name = String(verb.prefix { $0 != " " })
                let count = try scratch.must(
                    "strace -f -c -o calls moult \(verb) --store store >/dev/null; awk '/ total$/ { print $4 }' calls")
                calls[name] = Int(count.dropLast())
            }
            self.calls = calls
        }
    }

    private static let (day, week) = (4, 28)

    private func update(_ count: Int) throws {
        let scratch = try Scratch()
        var costs: [Int: Cost] = [:]
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
            if [Self.day, Self.week, count].contains(number + 1) {
                costs[number + 1] = try Cost(scratch, installed: releases[number % 2])
            }
        }
        let (first, week, last) = try (
            #require(costs[Self.day]), #require(costs[Self.week]), #require(costs[count])
        )
        #expect(last.bytes <= week.bytes + 2 << 20, "\(week.bytes), \(last.bytes)")
        let apply = try [first, last].map { try #require($0.calls["apply"]) }
        #expect(apply[1] <= apply[0] + 5, "\(apply)")
        // The quarantine has more sets than on the first day, and as many as after a week.
        let status = try [first, week, last].map { try #require($0.calls["status"]) }
        #expect(status[2] <= status[0] * 2 && status[2] <= status[1] * 11 / 10, "\(status)")
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
        print("\(count) updates: \(bytes) bytes in \(sets.count) sets; first day \(first), last day \(last)")
    }
}
