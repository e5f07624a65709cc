import MoultBasics
import MoultFiles
import MoultPublish
import StepKit
import TestSupport
import Testing

/// Tests which databases of two releases are compared, and the results.
@Suite struct ReleaseDiffTests {
    let scratch: Scratch
    let maker: ReleaseMaker

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
    }

    private func database(_ name: String, rows: Int) -> ReleaseMaker.Source {
        .reference(
            name,
            "CREATE TABLE t (id INTEGER PRIMARY KEY); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows)) INSERT INTO t SELECT i FROM n;"
        )
    }

    private func words(_ entry: ReleaseDiff.Entry) -> String {
        switch entry {
        case .compared(let diff):
            "\(diff.name) " + (diff.isSameFile ? "same" : diff.tables.map { "+\($0.added)-\($0.removed)" }.joined())
        case .added(let name): "\(name) added"
        case .removed(let name): "\(name) removed"
        case .kept(let name): "\(name) kept"
        case .unknown(let name, _): "\(name) unknown"
        }
    }

    @Test func `databases with the same name are compared`() throws {
        let old = try maker.make(
            "1.0.0", sequence: 1, [database("a", rows: 5), database("gone", rows: 1), database("same", rows: 3)])
        let new = try maker.make(
            "2.0.0", sequence: 2, [database("new", rows: 1), database("same", rows: 3), database("a", rows: 7)])
        let diff = try ReleaseDiff(from: Subject.open(old), to: Subject.open(new))
        #expect(diff.databases.map(words) == ["new added", "same same", "a +2-0", "gone removed"])
        #expect(diff.differs)
        #expect(diff.old.version == "1.0.0")
        let one = try ReleaseDiff(from: Subject.open(old), to: Subject.open(new), only: ["same"])
        #expect(one.databases.map(words) == ["same same"])
        #expect(!one.differs)
    }

    @Test func `a database file is compared with the database of the same file name`() throws {
        let release = try maker.make("1.0.0", sequence: 1, [database("a", rows: 5), database("b", rows: 1)])
        let alone = scratch.path("b.db")
        try Shell.must(["sqlite3", alone], input: "CREATE TABLE t (id INTEGER PRIMARY KEY);")
        let (one, two) = (try Subject.open(alone), try Subject.open(release))
        #expect(try ReleaseDiff(from: one, to: two).databases.map(words) == ["b +1-0"])
        #expect(try ReleaseDiff(from: two, to: one).databases.map(words) == ["b +0-1"])
        #expect(try ReleaseDiff(from: one, to: two, only: ["a"]).databases.map(words) == ["a +5-0"])
        try Files.rename(alone, to: scratch.path("x.db"))
        let error = #expect(throws: MoultError.self) {
            try ReleaseDiff(from: Subject.open(scratch.path("x.db")), to: two)
        }
        #expect(error?.why == "its databases are a, b")
        #expect(error?.outcome == .usage)
    }

    @Test func `a database whose file is missing counts as unknown`() throws {
        let old = try maker.make("1.0.0", sequence: 1, [database("a", rows: 5)])
        let new = try maker.make("2.0.0", sequence: 2, [database("a", rows: 6)])
        try Files.remove(scratch.path("releases/test-2.0.0.tar.zst"))
        let diff = try ReleaseDiff(from: Subject.open(old), to: Subject.open(new))
        #expect(diff.databases.map(words) == ["a unknown"])
        #expect(diff.differs)
        #expect(diff.notes.count == 1)
    }

    @Test func `a diff as JSON has the same content`() throws {
        let old = try scratch.database("old.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)")
        let new = try scratch.database(
            "new.db",
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b); INSERT INTO t VALUES (1, x'00ff', 1.5), (2, NULL, 'ü')")
        var options = DiffOptions()
        options.samples = 3
        let json = try ReleaseDiff(from: Subject.open(old), to: Subject.open(new), options: options).json
        #expect(json["differs"] == true)
        let table = try #require(json["databases"]?.array?.first?["tables"]?.array?.first)
        #expect(table["added"] == 2)
        #expect(table["method"] == "primary key")
        #expect(table["key"] == ["id"])
        #expect(
            table["samples"] == [
                ["change": "added", "new": [1, ["blob": "00ff", "bytes": 2], .number(1.5)]],
                ["change": "added", "new": [2, .null, "ü"]],
            ])
    }
}
