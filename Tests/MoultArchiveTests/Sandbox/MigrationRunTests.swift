import MoultBasics
import MoultFiles
import MoultSandbox
import TestSupport
import Testing

/// Untrusted migrations are tried on a copy of a user database in a separate process.
@Suite struct MigrationRunTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try Files.ensureDirectory(scratch.path("copy"))
        try Shell.must(
            ["sqlite3", scratch.path("copy/user.db")],
            input: "CREATE TABLE note(text); INSERT INTO note VALUES('mine'), ('yours'); PRAGMA user_version = 1;")
        try Shell.must(
            ["sqlite3", scratch.path("template.db")],
            input: "CREATE TABLE note(text, done); PRAGMA user_version = 2;")
    }

    private func trial(_ sql: String) throws -> MigrationRun {
        try Files.replace(scratch.path("2.sql"), with: Array((sql + ";PRAGMA user_version = 2;").utf8))
        return MigrationRun(
            name: "user", place: scratch.path("user.db"), copy: scratch.path("copy/user.db"),
            template: scratch.path("template.db"),
            scripts: [.init(name: "2.sql", number: 2, file: scratch.path("2.sql"))], depth: .full)
    }

    private func report(_ trial: MigrationRun, by program: String? = nil) throws -> TrialReport {
        try Validator.process(program ?? BuiltMoult.path()).try(trial, scratch: scratch.path("aside")) {}
    }

    @Test(arguments: ["delete", "wal"]) func `a trial of migrations reports the rows before and after`(mode: String)
        throws
    {
        try Shell.must(["sqlite3", scratch.path("copy/user.db"), "PRAGMA journal_mode=\(mode)"])
        let report = try report(
            trial("ALTER TABLE note ADD COLUMN done; DELETE FROM note WHERE text = 'mine'; CREATE TABLE x(y)"))
        #expect(report.failure == nil)
        #expect(report.before == ["note": 2])
        #expect(report.after == ["note": 1, "x": 0])
        #expect((report.userVersion, report.lack, report.finding) == (2, nil, nil))
        // The trial was rolled back, so the database is unchanged.
        let left = try Shell.must(
            [
                "sqlite3", scratch.path("copy/user.db"),
                "SELECT * FROM note; PRAGMA user_version; PRAGMA integrity_check",
            ])
        #expect(left == "mine\nyours\n1\nok\n")
        #expect(try Files.list(scratch.path) == ["2.sql", "copy", "template.db"])
    }

    @Test func `a column that the migrations do not create is reported`() throws {
        let report = try report(trial("ALTER TABLE note ADD COLUMN finished"))
        #expect(report.lack == "table note: column \"done\" is missing")
    }

    /// SQLite does not check the deadline during a single function call.
    @Test func `the limit on CPU time ends a migration inside a single SQL function`() throws {
        var trial = try trial("SELECT instr(zeroblob(16000000), CAST(zeroblob(8000000) || x'01' AS BLOB))")
        trial.processor = 1
        let error = #expect(throws: MoultError.self) { try report(trial) }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "the migrations of user cannot be tested")
        // On a busy machine, the time may be over before this much CPU time was used.
        #expect(["the trial took more than 1 s of CPU time", "the trial did not end in time"].contains(error?.why))
        #expect(try Files.list(scratch.path) == ["2.sql", "copy", "template.db"])
    }

    @Test func `an endless migration is stopped`() throws {
        var trial = try trial(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO note SELECT i, 1 FROM n")
        trial.processor = 1
        try Files.replace(
            scratch.path("2.sql"),
            with: Array("ALTER TABLE note ADD COLUMN done;".utf8)
                + (Files.read(scratch.path("2.sql"), limit: 1 << 20) ?? []))
        #expect(try report(trial).failure?.why == "it exceeded its time limit")
    }

    @Test(arguments: [
        ("kill -SEGV $$", "the trial ended with SIGSEGV"),
        ("kill -KILL $$", "the trial ended with SIGKILL, probably because memory ran out"),
        ("kill -XFSZ $$", "the trial needed more disk space than four times the database's size"),
        ("echo ready; echo '{}'", "applicationID in the result of the trial is missing"),
    ])
    func `a migration whose process ends early is refused`(script: String, why: String) throws {
        let path = scratch.path("impostor")
        try Files.writeNew(Array("#!/bin/sh\n\(script)\n".utf8), to: path, mode: 0o755)
        let error = #expect(throws: MoultError.self) { try report(trial("SELECT 1"), by: path) }
        #expect(error?.outcome == .refused)
        #expect(error?.why == why)
    }
}
