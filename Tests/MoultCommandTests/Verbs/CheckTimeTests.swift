import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// The time limit for the check of a database.
@Suite(.tags(.thorough)) struct CheckTimeTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    @Test(arguments: [0, 499_999_999, 500_000_000, 1_000_000_000, 10_500_000_000])
    func `a check may take a minute for each gigabyte, and at least half a minute`(size: Int) {
        let whole = max(30, Int((Double(size) * 60 / 1e9).rounded(.down)))
        #expect(CheckTime().seconds(for: size) == whole)
        #expect(CheckTime(isTrial: true).seconds(for: size) == whole / 4)
        #expect(CheckTime(fixed: 100, isTrial: true).seconds(for: size) == 25)
        #expect(CheckTime(fixed: 1, isTrial: true).seconds(for: size) == 1)
    }

    /// A small, sound database whose constraint or index takes seconds of CPU time to check. The database is created quickly,
    /// because the slow expression, which has the same value, is put into the schema after the rows were inserted.
    private static let slow = """
        CREATE TABLE t(x, CHECK(length(replace(hex(zeroblob(4)), '00', printf('%.3c', x))) > 0));
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO t SELECT i FROM n;
        CREATE INDEX i ON t(length(replace(hex(zeroblob(4)), '00', printf('%.3c', x))) > 0);
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(sql, 'zeroblob(4)', 'zeroblob(4000000)');
        """

    private func isRefused(_ ended: Shell.Ended, status: Int32 = 3, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(ended.status == status, "\(ended)", sourceLocation: sourceLocation)
        let text = ended.output + ended.errors
        for part in ["the check took more than 1 s of CPU time", "--check-timeout"] {
            #expect(text.contains(part), "\(ended)", sourceLocation: sourceLocation)
        }
    }

    @Test func `a store's time limit for a check comes from the option or the settings`() throws {
        let release = try ReleaseMaker(in: scratch.path("rel")).make(
            "1.0.0", sequence: 1, [.reference("slow", Self.slow)])
        try scratch.must("moult init store --product org.example.test")
        isRefused(try scratch.run("moult apply --check-timeout 1 --store store \(release)"))
        try scratch.must("sed -i '2i \"checkTimeout\": 1,' store/moult.json")
        isRefused(try scratch.run("moult apply --store store \(release)"))
        // A saved plan keeps the option.
        try scratch.must("moult plan --store store --check-timeout 600 --out plan.json \(release)", status: 2)
        try scratch.must("moult apply --store store --plan plan.json")
        isRefused(try scratch.run("moult verify --deep --store store"), status: 1)
        try scratch.must("moult verify --deep --check-timeout 600 --store store")
        // The maximum value is accepted.
        try scratch.must("sed -i 's/\"checkTimeout\": 1,/\"checkTimeout\": 604800,/' store/moult.json")
        try scratch.must("moult verify --deep --store store")
        #expect(try scratch.run("moult apply --check-timeout 0 --store store \(release)").status == 64)
    }

    @Test func `replace --check-timeout sets the time limit of the check`() throws {
        try scratch.write("slow.sql", Array(Self.slow.utf8))
        try scratch.must("sqlite3 slow.db < slow.sql && sqlite3 a.db 'CREATE TABLE t(x)'")
        isRefused(try scratch.run("moult replace --check-timeout 1 a.db slow.db"))
        try scratch.must("moult replace --check-timeout 600 a.db slow.db")
    }

    /// The release should also pass its checks on slower machines.
    @Test func `pack refuses a release whose checks take more than a quarter of the time limit`() throws {
        try scratch.write("slow.sql", Array(Self.slow.utf8))
        try scratch.write(
            "draft.json",
            Array(
                """
                { "manifest": 1, "product": "org.example.app", "version": "1.0.0", "sequence": 1,
                  "databases": { "slow": { "kind": "reference", "build": { "script": "slow.sql" } } } }
                """.utf8))
        isRefused(try scratch.run("moult pack draft.json --check-timeout 4"))
        #expect(try Files.list(scratch.path("releases")) == [])
        try scratch.must("moult pack draft.json --check-timeout 400")
    }
}
