import MoultBasics
import MoultFiles
import MoultSQLite
import TestSupport
import Testing

/// SQLite opens paths itself. In a directory that a command has opened for output, it uses the open directory.
@Suite struct PinnedFileTests {
    private let scratch: Scratch
    private var out: String { scratch.path("out") }

    init() throws {
        scratch = try Scratch()
        try scratch.must("mkdir out victim")
    }

    /// Exchanges the directory for a link, as its owner can.
    private func exchange() throws { try scratch.must("mv out moved; ln -s victim out") }

    @Test(arguments: ["DELETE", "WAL"])
    func `SQLite creates no file behind a link that replaced a pinned directory`(_ mode: String) throws {
        let pinned = try PinnedDirectory.output(out)
        try exchange()
        let connection = try Connection(path: "\(out)/a.db", access: .readWriteCreate)
        try connection.execute("PRAGMA journal_mode = \(mode); CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        try connection.attach("\(out)/b.db", as: "b", access: .readWriteCreate)
        try connection.execute("CREATE TABLE b.t AS SELECT * FROM main.t")
        try connection.detach("b")
        _ = try connection.query("VACUUM INTO ?1", [.text("\(out)/c.db")])
        if mode == "WAL" { #expect(try Files.facts("\(out)/a.db-wal") != nil) }
        try connection.close()
        for name in ["a", "b", "c"] {
            #expect(try NonInvasiveReader.into("\(out)/\(name).db") { try $0.int("SELECT x FROM t") } == 1)
        }
        #expect(try Files.isEmpty(scratch.path("victim")))
        #expect(try Files.list(scratch.path("moved")) == ["a.db", "b.db", "c.db"])
        withExtendedLifetime(pinned) {}
    }

    @Test func `a pinned directory is found by its absolute path, and a link in it is followed`() throws {
        try scratch.must("mkdir other; ln -s ../other/x.db out/up.db; ln -s \(out)/x.db other/back.db")
        let pinned = try PinnedDirectory.output(out)
        let root = Files.directory(of: try Files.resolvedForOpening("\(out)/x.db"))
        #expect(PinnedDirectory.split("\(root)/x.db") != nil)
        #expect(try Files.resolvedForOpening(scratch.path("other/back.db")) == "\(root)/x.db")
        #expect(try Files.resolvedForOpening("\(out)/up.db") == "\(root)/../other/x.db")
        withExtendedLifetime(pinned) {}
    }

    @Test func `another process gets the open directory, not its path`() throws {
        let pinned = try PinnedDirectory.output(out)
        try Files.writeNew([1], to: "\(out)/x")
        try exchange()
        var files: [Int32] = []
        let paths = ["\(out)/x", "\(out)/y", scratch.path("z")].map { PinnedDirectory.pathInChild($0, &files) }
        #expect(paths == ["/proc/self/fd/3/x", "/proc/self/fd/3/y", scratch.path("z")])
        var command = Subprocess.Command(["sh", "-c", "ls \(paths[0]); > \(paths[1])"])
        command.files = files
        #expect(try Subprocess(command).finish().succeeded)
        #expect(try Files.list(scratch.path("moved")) == ["x", "y"])
        #expect(try Files.isEmpty(scratch.path("victim")))
        withExtendedLifetime(pinned) {}
    }

    @Test func `SQL opens no file whose name is not UTF-8, and none of a similar name`() throws {
        let connection = try Connection(path: "\(out)/a.db", access: .readWriteCreate)
        #expect(throws: MoultError.self) {
            try connection.execute("ATTACH CAST('\(out)/' || x'ff' || '.db' AS TEXT) AS b; CREATE TABLE b.t(x)")
        }
        try connection.close()
        #expect(try Files.list(out) == ["a.db"])
    }
}
