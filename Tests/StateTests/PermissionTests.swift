import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// For a user who may not read a file of the store, the error contains the command that grants the permission, and
/// nothing changes.
@Suite struct PermissionTests {
    private let scratch: Scratch
    private let releases: ReleaseMaker
    private let path: String
    private let moult: String

    init() throws {
        scratch = try Scratch()
        releases = try ReleaseMaker(in: scratch.path("rel"))
        for number in 1...2 {
            _ = try releases.make(
                "\(number).0.0", sequence: number,
                [
                    .reference("ref", "CREATE TABLE r(n); INSERT INTO r VALUES(\(number))"),
                    .user("diary", "CREATE TABLE note(t)"), .cache("idx", "CREATE TABLE w(word)"),
                ])
        }
        path = scratch.path("store")
        moult = scratch.path("moult")
        try Shell.must(["cp", BuiltMoult.path(), moult])
        try Shell.must(["chmod", "-R", "a+rX", scratch.path])
        try Shell.must([moult, "init", path, "--product", "org.example.test"])
        try Shell.must([moult, "apply", "--store", path, manifest(1)])
        // Root can read every file.
        if geteuid() == 0 { try Shell.must(["chown", "-R", "65534:65534", path]) }
    }

    private func manifest(_ number: Int) -> String { scratch.path("rel/test-\(number).0.0.json") }

    /// Runs the command as a user who owns the store and is not root.
    private func run(_ words: [String]) throws -> Shell.Ended {
        let user = geteuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
        return try Shell.run(user + [moult] + words + ["--store", path])
    }

    @Test(arguments: ["diary", "idx"])
    func `the error for a writable database without read permission contains the command to fix it`(
        _ name: String
    ) throws {
        let file = "\(path)/\(name).db"
        try Files.setMode(file, 0)
        let before = try Files.facts(file)
        let advice = "chmod u+rw \(file)\n"
        for words in [["verify"], ["verify", "--deep"]] {
            let ended = try run(words)
            #expect(ended.status == 1)
            #expect(ended.output.contains("could not be done"))
            #expect(ended.output.contains(advice))
            let line = ended.output.split(separator: "\n").first { $0.contains("\(name) ") && $0.contains("check") }
            #expect(line?.contains("✓") == false, "\(ended.output)")
        }
        let status = try run(["status"])
        #expect(status.output.contains(advice))
        #expect(try run(["status", "--deep"]).output.contains(advice))
        for words in [["plan", manifest(2)], ["apply", manifest(2)], ["reset", name, "--set-user-data-aside"]] {
            let ended = try run(words)
            #expect(ended.status == 1, "\(words): \(ended)")
            #expect(ended.errors.contains("Allow it: \(advice)"), "\(words): \(ended)")
        }
        #expect(try Files.facts(file) == before)
        try Files.setMode(file, 0o600)
        #expect(try run(["verify", "--deep"]).status == 0)
        #expect(try run(["apply", manifest(2)]).status == 0)
    }

    /// Restoring a backup as root leaves such files in a user's store.
    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `a database of another user is not checked and not set aside`() throws {
        let file = "\(path)/diary.db"
        try Shell.must(["chown", "root", file])
        try Files.setMode(file, 0o600)
        let before = try Files.facts(file)
        for words in [["plan", manifest(2)], ["apply", manifest(2)]] {
            let ended = try run(words)
            #expect(ended.errors.contains("Run the command as user root, who owns \(file) (mode 600)"), "\(ended)")
            #expect(!ended.errors.contains("--set-user-data-aside"), "\(ended)")
        }
        let nagios = try run(["status", "--nagios"])
        #expect(nagios.status == 1 && nagios.output.contains("\(file): this user has no read permission"), "\(nagios)")
        let metrics = try run(["status", "--prometheus"]).output
        #expect(metrics.contains("moult_database_sound{") && metrics.contains("database=\"idx\""))
        let line = metrics.split(separator: "\n").first {
            $0.hasPrefix("moult_database_sound{") && $0.contains("database=\"diary\"")
        }
        #expect(line == nil)
        #expect(try Files.facts(file) == before)
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `the advised chown command works for a user without a name`() throws {
        let (old, new) = (scratch.path("old.db"), scratch.path("new.db"))
        for file in [old, new] { try Shell.must(["sqlite3", file, "CREATE TABLE t(x)"]) }
        try Files.setMode(new, 0o644)
        try Shell.must(["chgrp", "4001", old])
        try Files.setMode(old, 0o600)
        try Shell.must(["chmod", "777", scratch.path])
        let words = ["setpriv", "--reuid=4001", "--regid=4001", "--clear-groups", moult, "replace", old, new]
        let ended = try Shell.run(words)
        let advice = try #require(ended.errors.firstMatch(of: /sudo (chown .*)/)?.output.1, "\(ended)")
        try Shell.must(["sh", "-ec", String(advice)])
        #expect(try Shell.run(words).status == 0)
    }

    @Test func `a database without write permission is refused before a migration`() throws {
        let migrated = scratch.path("migrated")
        let script = "ALTER TABLE note ADD COLUMN mood; PRAGMA user_version = 1;"
        try Shell.must(["mkdir", migrated])
        try Files.replace(
            "\(migrated)/diary.sql", with: Array("CREATE TABLE note(t, mood); PRAGMA user_version = 1;".utf8))
        try Files.replace("\(migrated)/0001-mood.sql", with: Array(script.utf8))
        try Files.replace(
            "\(migrated)/draft.json",
            with: Array(
                """
                {"manifest": 1, "product": "org.example.test", "version": "3.0.0", "sequence": 3, "databases": {
                "diary": {"kind": "user", "build": {"script": "diary.sql"}, "migrations": ["0001-mood.sql"]}}}
                """.utf8))
        try Shell.must([moult, "pack", "-q", "\(migrated)/draft.json", "-o", scratch.path("rel")])
        try Shell.must(["chmod", "-R", "a+rX", scratch.path("rel")])
        let file = "\(path)/diary.db"
        try Files.setMode(file, 0o444)
        for words in [["plan", manifest(3)], ["apply", manifest(3)]] {
            let ended = try run(words)
            #expect(ended.status == 1, "\(ended)")
            #expect(ended.errors.contains("Allow it: chmod u+rw \(file)\n"), "\(ended)")
            #expect(!ended.errors.contains("publisher"), "\(ended)")
        }
        try Files.setMode(file, 0o600)
        #expect(try run(["apply", manifest(3)]).status == 0)
    }

    @Test func `verify exits with 75 if another program has locked a database`() throws {
        let program = try Program.python(
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN EXCLUSIVE'); print('ready', flush=True); sys.stdin.read()",
            "\(path)/diary.db")
        #expect(program.line() == "ready")
        let ended = try run(["verify"])
        #expect(ended.status == 75, "\(ended)")
        #expect(ended.output.contains("not checked: "))
        #expect(ended.output.contains("1 could not be done"))
    }
}
