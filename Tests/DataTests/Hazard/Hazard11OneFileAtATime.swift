import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Hazard 11: a transaction over several databases in WAL mode commits one file after the other.
@Suite struct Hazard11OneFileAtATime {
    let lab: Lab

    init() throws { lab = try Lab() }

    /// Runs the command, and kills it before its n-th write to a file; returns whether the command was killed.
    private func killed(_ command: [String], writing file: String, number: Int) throws -> Bool {
        try Shell.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-P", file, "-e", "trace=pwrite64", "-e",
                "inject=pwrite64:signal=SIGKILL:when=\(number)",
            ] + command
        ).status != 0
    }

    private func value(_ file: String, _ sql: String) throws -> String { try Shell.must(["sqlite3", file, sql]) }

    /// One of two files has the transaction, the other file does not, and nothing repairs this.
    @Test func `without moult, a crash leaves a transaction in one of two files`() throws {
        let (one, other) = (lab.scratch.path("one.db"), lab.scratch.path("other.db"))
        for file in [one, other] {
            try Shell.must(["sqlite3", file, "PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES('old')"])
        }
        let sql = "ATTACH '\(other)' AS o; BEGIN; UPDATE main.t SET x = 'new'; UPDATE o.t SET x = 'new'; COMMIT"
        #expect(try killed(["sqlite3", one, sql], writing: "\(other)-wal", number: 1))
        #expect(try value(one, "SELECT x FROM t") == "new\n")
        #expect(try value(other, "SELECT x FROM t") == "old\n")
    }

    private func release(_ version: String, _ sequence: Int) throws -> String {
        let isSecond = sequence == 2
        let migration = "ALTER TABLE note ADD COLUMN tag TEXT; PRAGMA user_version = 2;"
        let preserve: JSON.Member = .init("preserve", [["table": "note", "where": "mine = 1"]])
        return try lab.maker.make(
            version, sequence: sequence,
            [
                .reference("food", "CREATE TABLE food(release); INSERT INTO food VALUES('\(version)');"),
                .user(
                    "user",
                    "CREATE TABLE note(text\(isSecond ? ", tag TEXT" : "")); PRAGMA user_version = \(sequence);",
                    migrations: isSecond ? ["migrations/user/0002-tag.sql": migration] : [:]),
                .shared("note", Lab.notes(300, version), more: [preserve, .init("replace", "live")]),
            ])
    }

    /// Returns what an app finds: the releases of the read-only and the shared database, and the schema of the user
    /// database.
    private func found(_ store: String) throws -> [String] {
        [
            try value("\(store)/food.db", "SELECT release FROM food"),
            try value("\(store)/note.db", "SELECT DISTINCT text FROM note WHERE mine = 0"),
            try value("\(store)/user.db", "PRAGMA user_version"),
        ].map { String($0.first ?? "-") }
    }

    /// Each file of a release is committed separately. A kill before the decision leaves the old release; after a kill between two
    /// commits, the next command completes the remaining ones.
    @Test func `an update of several files is completed after a crash`() throws {
        let releases = try [release("1.0.0", 1), release("2.0.0", 2)]
        var halves = 0
        /// Kills the update at a write; returns false if it ended before.
        func isKilled(at number: Int, in file: String) throws -> Bool {
            let round = try Scratch()
            let store = round.path("store")
            try Store(at: store).updateBlocking(to: releases[0])
            for name in ["note", "user"] {
                try Shell.must(["sqlite3", "\(store)/\(name).db", "PRAGMA journal_mode=WAL"])
            }
            try Shell.must(["sqlite3", "\(store)/note.db", "INSERT INTO note VALUES(9000, 'mine', 1)"])
            try Shell.must(["sqlite3", "\(store)/user.db", "INSERT INTO note VALUES('mine')"])
            let command = [try BuiltMoult.path(), "apply", "--store", store, releases[1]]
            let note = Comment("killed at write \(number) to \(file)")
            guard try killed(command, writing: "\(store)/\(file)", number: number) else { return false }
            if Set(try found(store)).count > 1 { halves += 1 }
            // The app continues to write before the recovery.
            try Shell.must(["sqlite3", "\(store)/user.db", "INSERT INTO note(text) VALUES('later')"])
            let ended = try Orchestrator(root: store, steps: .builtIn).recover().map(\.ending)
            let version = ended == [.cleaned] ? "1" : "2"
            // After the last commit, only the marker in the user database is left.
            #expect([[.finished], [.cleaned], []].contains(ended), note)
            #expect(try value("\(store)/user.db", "SELECT group_concat(name) FROM sqlite_schema") == "note\n", note)
            #expect(try found(store) == [version, version, version], note)
            #expect(try value("\(store)/note.db", "SELECT text FROM note WHERE mine = 1") == "mine\n", note)
            #expect(try value("\(store)/user.db", "SELECT group_concat(text) FROM note") == "mine,later\n", note)
            return true
        }
        for file in ["note.db-wal", "user.db-wal"] {
            // The last write, before which the search tries others.
            var (low, high) = (0, 1)
            while try isKilled(at: high, in: file) { (low, high) = (high, high * 2) }
            while high - low > 1 {
                let middle = (low + high) / 2
                if try isKilled(at: middle, in: file) { low = middle } else { high = middle }
            }
        }
        // If no kill was between two files, the test has shown nothing.
        #expect(halves > 0)
    }
}
