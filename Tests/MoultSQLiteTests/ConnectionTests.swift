import Glibc
import MoultBasics
import MoultSQLite
import Testing

@Suite struct ConnectionTests {
    let scratch = Scratch()

    @Test func runsAndReadsBackEveryKindOfValue() throws {
        let connection = try Connection(path: scratch.path("a.db"), access: .readWriteCreate)
        try connection.execute("CREATE TABLE t (a, b, c, d, e); -- and\n; CREATE INDEX i ON t (a);")
        let row: [Value] = [.null, .integer(.min), .real(0.1), .text("naïve 'x'"), .blob([0, 255])]
        try connection.withStatement("INSERT INTO t VALUES (?,?,?,?,?)") { statement in
            try statement.bind(row)
            try statement.run()
        }
        #expect(try connection.query("SELECT * FROM t") == [row])
        #expect(try connection.changes == 1)
        #expect(try connection.lastInsertRowID == 1)
        try connection.close()
    }

    /// Characters that mean something in a URI, or to SQLite's own reading of names.
    @Test(arguments: ["a?b.db", "a#b.db", "a%41.db", "a b&mode=ro.db", "ü+;=.db", ":memory:", "a\"'.db"])
    func opensExactlyTheNamedFile(_ name: String) throws {
        let connection = try Connection(path: scratch.path(name), access: .readWriteCreate)
        try connection.execute("CREATE TABLE t (a)")
        try connection.close()
        #expect(scratch.names() == [name])
        #expect(try Connection(path: scratch.path(name), access: .readOnly).int("SELECT count(*) FROM t") == 0)
    }

    @Test func twoLeadingSlashesAreNoHost() throws {
        let path = "/" + scratch.path("a.db")
        try Connection(path: path, access: .readWriteCreate).execute("CREATE TABLE t (a)")
        #expect(scratch.names() == ["a.db"])
    }

    @Test(arguments: Access.allCases.filter { $0 != .readWriteCreate })
    func aMissingFileIsAnErrorThatNamesItAndCreatesNothing(_ access: Access) throws {
        let path = scratch.path("missing.db")
        let error = #expect(throws: MoultError.self) { _ = try Connection(path: path, access: access) }
        #expect(error?.code == .cannotOpenDatabase)
        #expect(
            error?.description
                == "cannot open database \(path): unable to open database file: No such file or directory "
                + "(SQLITE_CANTOPEN)")
        #expect(scratch.names() == [])
    }
}
