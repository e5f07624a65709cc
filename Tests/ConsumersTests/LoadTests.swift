import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Installs many releases of a shared database while eight processes read it and two write to it. The tests run one
/// after the other, because each needs the whole machine. `make load` installs the documented number of releases.
@Suite(.tags(.thorough), .serialized) struct LoadTests {
    /// All programs keep the database open, and none of them is notified of releases.
    @Test(arguments: ["wal", "delete"])
    func `replacements under load lose no row`(_ mode: String) throws {
        let load = try Load()
        try Store(at: load.root).updateBlocking(to: load.release(1))
        try Shell.must(["sqlite3", load.pantry, "PRAGMA journal_mode=\(mode)"])
        try prove(
            load,
            readers: ["connection", "connection", "connection", "query", "query", "shell", "shell", "moult"].map {
                try load.reader($0)
            },
            writers: (1...2).map { try load.writer($0, keepsOpen: true) })
        #expect(try Shell.must(["sqlite3", load.pantry, "PRAGMA journal_mode"]) == "\(mode)\n")
    }

    /// Every program opens the database for one query or row at a time, and waits at a gate that a consumer closes
    /// while a release is installed.
    @Test(arguments: ["wal", "delete"])
    func `replacements behind a gate lose no row`(_ mode: String) throws {
        let load = try Load()
        try Store(at: load.root).updateBlocking(to: load.release(1))
        try Shell.must(["sqlite3", load.pantry, "PRAGMA journal_mode=\(mode)"])
        let gate = load.scratch.path("gate")
        let consumers: JSON = [
            [
                "name": "gate",
                "command": [
                    "release": ["sh", "-c", .string("touch \(gate).closed && flock -x \(gate) true")],
                    "reload": ["rm", "-f", .string("\(gate).closed")],
                ],
            ]
        ]
        try Settings.rewrite(StoreLayout(root: load.root), "consumers", consumers)
        try prove(
            load,
            readers: ["query", "query", "query", "query", "shell", "shell", "moult", "moult"].map {
                try load.reader($0, gate: gate)
            },
            writers: (1...2).map { try load.writer($0, keepsOpen: false, gate: gate) })
        #expect(try Shell.must(["sqlite3", load.pantry, "PRAGMA journal_mode"]) == "\(mode)\n")
    }

    private func prove(_ load: Load, readers: [Program], writers: [Program]) throws {
        for program in readers + writers { #expect(program.line() == "ready") }
        try load.releases(Load.count)
        var (reads, writes) = (0, 0)
        for reader in readers {
            let (numbers, text) = Load.end(reader)
            // The number of reads, the last release seen, and the number of faults.
            try #require(numbers.count == 3, "\(text)")
            #expect(numbers[2] == 0, "\(text)")
            reads += numbers[0]
            // The program must have read during the updates, not only before and after them.
            #expect(numbers[0] > Load.count / 2)
            #expect(numbers[1] > Load.count / 2)
        }
        // All writers exit before the test reads without a busy timeout.
        for (index, ended) in writers.map({ Load.end($0) }).enumerated() {
            let (numbers, text) = ended
            try #require(numbers.count == 2, "\(text)")
            #expect(numbers[1] == 0, "\(text)")
            writes += numbers[0]
            #expect(numbers[0] > Load.count / 2)
            let first = (index + 1) * 1_000_000
            // Every acknowledged write is in the database: each inserted row, and the last value of the row that is
            // updated.
            let mine = "SELECT count(*) FROM food WHERE id > \(first) AND id < \(first + 1_000_000)"
            #expect(try Shell.must(["sqlite3", load.pantry, mine]) == "\(numbers[0])\n")
            #expect(
                try Shell.must(["sqlite3", load.pantry, "SELECT name FROM food WHERE id = \(first)"])
                    == "\(numbers[0])\n")
        }
        #expect(try Shell.must(["sqlite3", load.pantry, "PRAGMA integrity_check"]) == "ok\n")
        #expect(try Shell.must(["sqlite3", load.pantry, "SELECT DISTINCT release FROM info"]) == "\(Load.count + 1)\n")
        print("\(Load.count) releases, \(reads) reads, \(writes) writes")
    }
}
