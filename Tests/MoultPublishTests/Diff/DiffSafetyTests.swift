import MoultBasics
import MoultFiles
import MoultPublish
import MoultSQLite
import TestSupport
import Testing

/// A comparison changes no file, and ends even for damaged files.
@Suite struct DiffSafetyTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private let rows = """
        CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO t SELECT i, 'row ' || i FROM n
        """

    /// The state of a database that another process has open or has left behind.
    enum State: String, CaseIterable { case rollback, closedWAL, killedWAL, walWithoutIndex }

    private func make(_ state: State, _ name: String, _ sql: String) throws -> String {
        let path = scratch.path(name)
        switch state {
        case .rollback: try scratch.database(name, sql)
        case .closedWAL: try scratch.database(name, "PRAGMA journal_mode = WAL; \(sql)")
        case .killedWAL, .walWithoutIndex:
            try Shell.must([
                "python3", "-c",
                """
                import os, sqlite3, sys
                c = sqlite3.connect(sys.argv[1], isolation_level=None)
                c.execute("pragma journal_mode = wal")
                c.executescript(sys.argv[2])
                os._exit(0)
                """, path, sql,
            ])
            #expect(try Files.facts("\(path)-wal")?.size ?? 0 > 0)
            if state == .walWithoutIndex { try Files.remove("\(path)-shm") }
        }
        return path
    }

    @Test(arguments: State.allCases, State.allCases) func `a comparison changes nothing`(_ one: State, _ two: State)
        throws
    {
        let old = try make(one, "old.db", rows)
        let new = try make(two, "new.db", "\(rows); DELETE FROM t WHERE id = 7; UPDATE t SET a = 'x' WHERE id = 9")
        let before = try Tree(scratch.path)
        var options = DiffOptions()
        options.samples = 5
        options.pages = true
        let diff = try DatabaseComparison("x", old: old, new: new, options: options).diff()
        #expect(diff.tables.map { [$0.added, $0.removed, $0.changed] } == [[0, 1, 1]])
        #expect(
            diff.tables.first?.samples == [
                RowSample(old: [.integer(7), .text("row 7", bytes: 5)], new: nil),
                RowSample(
                    old: [.integer(9), .text("row 9", bytes: 5)], new: [.integer(9), .text("x", bytes: 1)]),
            ])
        #expect(try Tree(scratch.path) == before)
    }

    @Test func `a file is the same as itself and as its copy`() throws {
        let path = try scratch.database("one.db", rows)
        try Shell.must(["cp", path, scratch.path("copy.db")])
        #expect(try DatabaseComparison("x", old: path, new: path).diff().isSameFile)
        #expect(try DatabaseComparison("x", old: path, new: scratch.path("copy.db")).diff().isSameFile)
    }

    /// Whatever bytes are damaged, the comparison ends, and reports no fault in the undamaged database.
    @Test(.tags(.sampled), arguments: (1...60).sampled(15))
    func `a comparison of damaged files ends with a result or an error that names the file`(
        _ seed: Int
    ) throws {
        let old = try scratch.database("old.db", rows)
        try Shell.must(["cp", old, scratch.path("new.db")])
        let new = scratch.path("new.db")
        var random = SeededRandom(seed)
        let size = try #require(try Files.facts(new)).size
        let file = try Descriptor(new, .write)
        for _ in 0..<(1 + Int(random.next() % 6)) {
            // Half of the damage is in the headers of pages.
            let page = Int(random.next() % UInt64(size / 4096)) * 4096
            let offset = random.next() % 2 == 0 ? page + Int(random.next() % 16) : Int(random.next() % UInt64(size))
            try [UInt8(truncatingIfNeeded: random.next())].withUnsafeBytes { try file.write($0, at: offset) }
        }
        try file.close()
        do {
            let diff = try DatabaseComparison("x", old: old, new: new).diff()
            if !diff.isSameFile, let table = diff.tables.first(where: { $0.name == "t" }), table.presence == .both {
                #expect(table.rowsBefore == 3000)
            }
        } catch let error as MoultError {
            #expect(error.what.contains("new.db"))
        }
    }

    /// A root page that is its own child, has the schema as a child, or has the same child twice.
    @Test(arguments: [1, 2, 3]) func `a comparison reports cyclic pages as damage`(_ kind: Int) throws {
        let old = try scratch.database("old.db", "PRAGMA page_size = 512; \(rows)")
        try Shell.must(["cp", old, scratch.path("new.db")])
        let new = scratch.path("new.db")
        let file = try Descriptor(new, .write)
        var page = [UInt8](repeating: 0, count: 512)
        _ = try page.withUnsafeMutableBytes { try file.read(into: $0, at: 512) }
        try #require(page[0] == 0x05)
        // The root is page 2; the number of its last child follows in its header.
        let first = page[12] == 0 ? Int(page[13]) : 0
        let child: [UInt8] = kind == 1 ? [0, 0, 0, 2] : kind == 2 ? [0, 0, 0, 1] : Array(page[first..<first + 4])
        try child.withUnsafeBytes { try file.write($0, at: 512 + 8) }
        try file.close()
        // SQLite reads such a file, and finds a part of the rows.
        let error = #expect(throws: MoultError.self) { try DatabaseComparison("x", old: old, new: new).diff() }
        #expect(error?.code == .diff && error?.what == "\(new) is damaged", "\(error?.description ?? "")")
    }

    /// The sqlite3 shell creates the databases, because the shell has functions that write files.
    @Test func `a comparison does not run the functions of a hostile schema`() throws {
        let stolen = scratch.path("stolen")
        for (name, row) in [("old.db", ""), ("new.db", "INSERT INTO t (a) VALUES (1);")] {
            try Shell.must(
                ["sqlite3", scratch.path(name)],
                input: """
                    CREATE TABLE t (id INTEGER PRIMARY KEY, a CHECK (a <> writefile('\(stolen)', 'x')));
                    CREATE VIEW v AS SELECT writefile('\(stolen)', 'x');
                    PRAGMA ignore_check_constraints = 1; \(row)
                    """)
        }
        try Files.remove(stolen)
        let diff = try DatabaseComparison("x", old: scratch.path("old.db"), new: scratch.path("new.db")).diff()
        #expect(diff.tables.map(\.added) == [1])
        #expect(try Files.facts(stolen) == nil)
    }

    @Test func `a comparison stops on request`() throws {
        struct Stop: Error {}
        let (old, new) = try scratch.pair(rows, new: "INSERT INTO t VALUES (9999, '')")
        var options = DiffOptions()
        options.progress = { _, _, _ in throw Stop() }
        #expect(throws: Stop.self) { try DatabaseComparison("x", old: old, new: new, options: options).diff() }
    }

    @Test func `a hot journal is reported`() throws {
        let old = try scratch.database("old.db", rows)
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("pragma cache_size = 1"); c.execute("begin")
            c.execute("update t set a = 'torn'")
            os._exit(0)
            """, try scratch.database("new.db", rows),
        ])
        let before = try Tree(scratch.path)
        let error = #expect(throws: MoultError.self) {
            try DatabaseComparison("x", old: old, new: scratch.path("new.db")).diff()
        }
        #expect(error?.code == .hotJournal)
        #expect(try Tree(scratch.path) == before)
    }
}
