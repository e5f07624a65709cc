import Moult
import MoultBasics
import MoultFiles
import MoultSQLite
import TestSupport
import Testing

/// Hazard 10: ATTACH creates an empty database at a wrong path, refuses some names, and is limited to ten databases.
@Suite struct Hazard10Attach {
    let lab: Lab

    init() throws { lab = try Lab() }

    private static let codes = "CREATE TABLE codes(x); INSERT INTO codes VALUES(1);"

    @Test func `without moult, ATTACH creates files and has limits`() throws {
        let wrong = lab.scratch.path("wrong.db")
        try Shell.must(["sqlite3", ":memory:", "ATTACH '\(wrong)' AS food; PRAGMA food.user_version = 1"])
        #expect(try Files.facts(wrong) != nil)
        for name in ["main", "temp"] {
            let ended = try Shell.run(["sqlite3", ":memory:", "ATTACH '\(wrong)' AS \(name)"])
            #expect(ended.errors.contains("database \(name) is already in use"))
        }
        let eleven = (1...11).map { "ATTACH ':memory:' AS d\($0);" }.joined()
        #expect(try Shell.run(["sqlite3", ":memory:", eleven]).errors.contains("too many attached databases - max 10"))
    }

    /// SQLite itself creates an empty database if the file is missing.
    @Test(arguments: ["food", "pantry"])
    func `a missing database is an error and is not created`(name: String) throws {
        let pantry = ReleaseMaker.Source.shared("pantry", Self.codes, more: [])
        try lab.store.updateBlocking(
            to: lab.maker.make("1.0.0", sequence: 1, [.reference("food", Self.codes), pantry]))
        let file = try lab.store.lease().path(of: name)
        try Shell.must(["chmod", "u+w", Files.directory(of: file)])
        try Files.remove(file)
        let error = #expect(throws: MoultError.self) { try lab.store.connect() }
        #expect(error?.description.contains(file) == true)
        #expect(try Files.facts(file) == nil)
    }

    /// A reserved name is refused before anything is changed.
    @Test(arguments: ["main", "temp", "MAIN"])
    func `reserved schema names are refused`(name: String) throws {
        let more: [JSON.Member] = [.init("attach", ["as": .string(name)])]
        let error = #expect(throws: MoultError.self) {
            try lab.store.updateBlocking(
                to: lab.maker.make("1.0.0", sequence: 1, [.reference("food", Self.codes, more: more)]))
        }
        #expect(error?.description.contains("databases.food.attach.as") == true)
        #expect(try Files.list(lab.store.directory).filter { $0.hasSuffix(".db") }.isEmpty)
    }

    /// A release may have as many databases as a connection can open together; a release with more is refused.
    @Test func `a release with more databases than can be attached is refused`() throws {
        func release(_ version: String, _ count: Int) throws -> String {
            try lab.maker.make(version, sequence: count, (1...count).map { .reference("d\($0)", Self.codes) })
        }
        try lab.store.updateBlocking(to: release("1.0.0", 10))
        let before = try Tree(lab.path("d1.db"))
        let error = #expect(throws: MoultError.self) { try lab.store.updateBlocking(to: release("2.0.0", 11)) }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "the release has 11 databases to attach")
        #expect(try Tree(lab.path("d1.db")) == before)
        let connection = try lab.store.connect()
        #expect(
            try connection.texts("SELECT sum(x) FROM (SELECT x FROM d1.codes UNION ALL SELECT x FROM d10.codes)") == [
                ["2"]
            ])
        try connection.close()
    }

    @Test func `a connection cannot write to shipped content`() throws {
        let user = ReleaseMaker.Source.user("user", "CREATE TABLE note(text);")
        try lab.store.updateBlocking(to: lab.maker.make("1.0.0", sequence: 1, [.reference("food", Self.codes), user]))
        let connection = try lab.store.connect()
        let error = #expect(throws: MoultError.self) { try connection.execute("INSERT INTO food.codes VALUES(2)") }
        #expect(error?.description.contains("readonly") == true)
        try connection.execute("INSERT INTO note VALUES('mine')")
        try connection.close()
    }
}
