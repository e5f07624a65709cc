import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A database that apps can use, but that every update refuses to write to, is reported by each command that looks at the store:
/// otherwise updates stop, and monitoring stays green.
@Suite struct BlockedUpdateTests {
    private let scratch: Scratch
    private let releases: ReleaseMaker
    private let store: String
    private var file: String { "\(store)/diary.db" }

    init() throws {
        scratch = try Scratch()
        releases = try ReleaseMaker(in: scratch.path("rel"))
        for number in 1...2 {
            _ = try releases.make(
                "\(number).0.0", sequence: number,
                [
                    .reference("ref", "CREATE TABLE r(n); INSERT INTO r VALUES(\(number))"),
                    .shared("diary", "CREATE TABLE note(t); INSERT INTO note VALUES(\(number))", more: []),
                    .user("notes", "CREATE TABLE own(t)"),
                ])
        }
        store = scratch.path("store")
        try BuiltMoult.must(["init", store, "--product", "org.example.test"])
        #expect(try run("apply", manifest(1)).status == 0)
    }

    private func manifest(_ number: Int) -> String { scratch.path("rel/test-\(number).0.0.json") }

    private func run(_ words: String...) throws -> Shell.Ended {
        try BuiltMoult.run(words + ["--store", store])
    }

    /// Checks that every command reports the same reason.
    private func expectReports(of why: String) throws {
        let status = try run("status")
        #expect(status.output.contains("✗ diary") && status.output.contains(why), "\(status)")
        let nagios = try run("status", "--nagios")
        #expect(nagios.status == 1 && nagios.output.contains(why), "\(nagios)")
        for words in [["verify"], ["status", "--deep"]] {
            let found = try BuiltMoult.run(words + ["--store", store])
            #expect(found.status == 1 && found.output.contains(why), "\(found)")
        }
        for words in [["plan", manifest(1)], ["apply", manifest(1)], ["plan", manifest(2)], ["apply", manifest(2)]] {
            let refused = try BuiltMoult.run(words + ["--store", store])
            #expect(refused.status == 3 && refused.errors.contains(why), "\(words): \(refused)")
        }
    }

    private func expectNone() throws {
        #expect(try run("verify").status == 0)
        #expect(try run("apply", manifest(2)).status == 0)
        // The failed attempts are over, too.
        #expect(try run("status", "--nagios").status == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `a link of root to a file of another user`() throws {
        let place = try scratch.directory("of another user")
        try Files.rename(file, to: "\(place)/diary.db")
        try Files.symlink(to: "\(place)/diary.db", at: file)
        try Shell.must(["chown", "-R", "65534", place])
        try expectReports(of: "user 65534 controls the link, the file or its directory")
        try Shell.must(["chown", "-R", "0", place])
        try expectNone()
    }

    @Test func `a file with two names`() throws {
        try Files.hardLink(file, at: scratch.path("other"))
        try expectReports(of: "the file has more than one hard link")
        let now = try #require(
            try run("apply", manifest(2)).errors.firstRange(of: "a file of its own: ").map { range in
                String(try run("apply", manifest(2)).errors[range.upperBound...]).trimmed
            })
        try Shell.must(["sh", "-ec", now])
        try expectNone()
    }

    @Test func `a user database with two names is reported, and stays usable without a migration`() throws {
        let own = "\(store)/notes.db"
        try Files.hardLink(own, at: scratch.path("other notes"))
        #expect(try run("status", "--nagios").status == 1)
        #expect(try run("verify").output.contains("the file has more than one hard link"))
        for number in [1, 2] { #expect(try run("apply", manifest(number)).status == 0) }
    }

    @Test func `damaged pages are reported of a database from another release, too`() throws {
        try Shell.must([
            "sqlite3", file,
            "CREATE TABLE big(x); INSERT INTO big SELECT zeroblob(900) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT i FROM n); UPDATE moult_release SET digest = 'other', release = '5.0.0'",
        ])
        let size = try #require(try Files.facts(file)).size
        try Shell.must([
            "sh", "-ec", "dd if=/dev/urandom of=\"$0\" bs=4096 count=3 seek=\(size / 4096 - 4) conv=notrunc 2>&1", file,
        ])
        let found = try run("verify", "diary")
        #expect(found.status == 1, "\(found)")
        #expect(found.output.contains("its content is from release 5.0.0"), "\(found)")
        #expect(found.output.lowercased().contains("page"), "\(found)")
        #expect(found.output.contains("moult reset diary"), "\(found)")
    }
}
