import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Hazard 5: overwriting a file in place breaks its readers.
@Suite struct Hazard05OverwriteUnderReaders {
    let lab: Lab
    let path: String

    init() throws {
        lab = try Lab()
        path = lab.path("note.db")
    }

    /// With this many rows, a reader in the middle of its query still has to read most pages.
    static let rows = 20_000
    static let small = "PRAGMA cache_size=1;"
    static let mapped = "PRAGMA mmap_size=1000000000;"
    private static let all = "SELECT text FROM note"

    /// Starts a reader that is in the middle of its query.
    private func reader(_ pragmas: String) throws -> RunningApp {
        let reader = try RunningApp(path, pragmas)
        try reader.begin(Self.all)
        return reader
    }

    @Test func `without moult, overwriting a file breaks its readers`() throws {
        let new = lab.scratch.path("new.db")
        try Shell.must(["sqlite3", path], input: Lab.notes(Self.rows, "old"))
        try Shell.must(["sqlite3", new], input: Lab.notes(3, "new"))
        let reader = try reader(Self.small)
        try Shell.must(["sh", "-ec", "cat \(new) > \(path)"])
        #expect(try reader.rest() == "error: database disk image is malformed\n")
    }

    /// Reading a mapped page that the file no longer has causes SIGBUS.
    @Test func `without moult, truncating a mapped file ends its reader with SIGBUS`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(Self.rows, "old"))
        let reader = try reader(Self.mapped)
        try Shell.must(["truncate", "-s", "0", path])
        #expect(throws: MoultError.self) { try reader.rest() }
    }

    @Test(arguments: [small, mapped])
    func `a switch of releases does not break readers`(pragmas: String) throws {
        try lab.store.updateBlocking(to: lab.sealed("1.0.0", 1, Self.rows, "old"))
        let reader = try reader(pragmas)
        try lab.store.updateBlocking(to: lab.sealed("2.0.0", 2, 3, "new"))
        #expect(try reader.rest() == "\(Self.rows - 1)|old\n")
        #expect(try Lab.read(path) == "3|new|new\n")
        // A rollback does not change the file either.
        try lab.store.rollbackBlocking(reason: "test")
        #expect(try Lab.read(path) == "\(Self.rows)|old|old\n")
    }

    @Test(arguments: [small, mapped])
    func `a live replacement does not break readers`(pragmas: String) throws {
        try lab.store.updateBlocking(to: lab.shared("1.0.0", 1, Self.rows, "old"))
        let reader = try reader("PRAGMA journal_mode=WAL;" + pragmas)
        try lab.store.updateBlocking(to: lab.shared("2.0.0", 2, 3, "new"))
        #expect(try Lab.read(path) == "3|new|new\n")
        #expect(try reader.rest() == "\(Self.rows - 1)|old\n")
        #expect(try reader.run(Self.all) == "new\nnew\nnew\n")
        try reader.close()
    }

    @Test(arguments: [small, mapped])
    func `setting a cache aside does not break its readers`(pragmas: String) throws {
        try lab.store.updateBlocking(to: lab.cache("1.0.0", 1, Self.rows, "old"))
        let reader = try reader(pragmas)
        let next = try lab.cache("2.0.0", 2, 3, "new")
        try lab.store.updateBlocking(to: next)
        #expect(try reader.rest() == "\(Self.rows - 1)|old\n")
        try reader.close()
        try lab.store.updateBlocking(to: next)
        #expect(try Lab.read(path) == "3|new|new\n")
    }

    @Test func `replacing an app's cache does not break its readers`() throws {
        try Shell.must(["sqlite3", path], input: Lab.notes(Self.rows, "old"))
        let reader = try reader(Self.mapped)
        #expect(try Store.cache(at: path, schema: Lab.cacheSchema(3, "new", 1)) != .ready)
        #expect(try reader.rest() == "\(Self.rows - 1)|old\n")
        #expect(try Lab.read(path) == "3|new|new\n")
    }
}
