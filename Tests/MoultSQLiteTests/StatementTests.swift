import MoultBasics
import MoultLibc
import MoultSQLite
import Testing

@Suite struct StatementTests {
    let connection: Connection

    init() throws { connection = try Connection.inMemory() }

    /// A bulk import binds bytes in the caller's buffer to a single statement, without an allocation per row.
    @Test func `a statement binds borrowed bytes`() throws {
        try connection.execute("CREATE TABLE t (a, b, c)")
        let line = Array("bread|rye|12".utf8)
        try connection.withStatement("INSERT INTO t VALUES (?, ?, ?)") { statement in
            #expect(statement.parameterCount == 3)
            try line.withUnsafeBytes { bytes in
                for _ in 0..<2 {
                    try statement.bindText(borrowing: UnsafeRawBufferPointer(rebasing: bytes[0..<5]), at: 1)
                    try statement.bindText(borrowing: UnsafeRawBufferPointer(rebasing: bytes[6..<9]), at: 2)
                    try statement.bind(Int64(12), at: 3)
                    try statement.run()
                    statement.reset()
                }
                try statement.clearBindings()
            }
            try statement.run()
        }
        let row: [Value] = [.text("bread"), .text("rye"), .integer(12)]
        #expect(try connection.query("SELECT * FROM t") == [row, row, [.null, .null, .null]])
    }

    /// An empty buffer may have no address, which SQLite would treat as NULL.
    @Test func `an empty value is not NULL`() throws {
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        try connection.withStatement("SELECT typeof(?), typeof(?), typeof(?), typeof(?), ?") { statement in
            try statement.bindText(borrowing: empty, at: 1)
            try statement.bind(.text(""), at: 2)
            try statement.bind(.blob([]), at: 3)
            try statement.bindNull(at: 4)
            try statement.bind(.blob([]), at: 5)
            let row = try statement.step() ? statement.row() : []
            #expect(row == [.text("text"), .text("text"), .text("blob"), .text("null"), .blob([])])
        }
    }

    @Test func `a statement gives access to columns without copies`() throws {
        try connection.withStatement("SELECT 'naïve' AS word, x'00ff' AS raw, NULL, 1.5, 7") { statement in
            let names = statement.columnNames
            #expect(names == ["word", "raw", "NULL", "1.5", "7"])
            let hasRow = try statement.step()
            #expect(hasRow)
            let (text, blob) = (try statement.withText(0) { Array($0) }, try statement.withBlob(1) { Array($0) })
            #expect(text == Array("naïve".utf8))
            #expect(blob == [0, 255])
            let null = try statement.withText(2) { Array($0) }
            #expect(null == [])
            let storage = (0..<5).map { statement.storage($0) }
            #expect(storage == [.text, .blob, .null, .real, .integer])
            let numbers = (statement.double(3), statement.int64(4), statement.isNull(2))
            #expect(numbers == (1.5, 7, true))
            let hasMore = try statement.step()
            #expect(!hasMore)
        }
    }

    @Test func `a statement returns its text and the text after it`() throws {
        try connection.withStatement(" SELECT :a, $b ; SELECT 2") { statement in
            #expect(statement.sql == " SELECT :a, $b ;")
            #expect(statement.tail == " SELECT 2")
            #expect(statement.parameterCount == 2)
            try statement.bind([.text("it's"), .integer(1)])
            #expect(statement.isReadOnly == true)
        }
        try connection.withStatement("CREATE TABLE t (a)") { #expect($0.isReadOnly == false) }
    }

    @Test(arguments: [
        ("", "it contains no statement: \"\""), ("-- nothing", "it contains no statement: \"-- nothing\""),
        ("SELECT 1; SELECT 2", "the SQL contains a second statement: SELECT 1; SELECT 2"),
        ("SELECT ?", "the statement has 1 parameters, and 0 values were given: SELECT ?"),
        ("SELECT 1\u{0}", "the statement contains a NUL character"),
        ("SELEKT", "near \"SELEKT\": syntax error (SQLITE_ERROR) in: SELEKT"),
    ])
    func `a query must be a single complete statement`(_ sql: String, _ why: String) {
        let error = #expect(throws: MoultError.self) { _ = try connection.query(sql) }
        #expect(error?.why == why)
    }

    @Test(arguments: ["SELECT 1;", "SELECT 1; -- done", "; ; SELECT 1 ;; /* done */ ;"])
    func `comments and spaces may follow a statement`(_ sql: String) throws {
        #expect(try connection.int(sql) == 1)
    }

    /// Bound values may be user data, which must not be logged.
    @Test func `errors do not contain bound values`() throws {
        try connection.execute("CREATE TABLE t (a UNIQUE)")
        let insert = { try connection.query("INSERT INTO t VALUES (?)", [.text("secret")]) }
        _ = try insert()
        let error = #expect(throws: MoultError.self) { _ = try insert() }
        #expect(error?.code == .constraint)
        #expect(error?.sqlite?.resultCode == ResultCode(2067))
        #expect(
            error?.description
                == "cannot run a statement on :memory:: UNIQUE constraint failed: t.a "
                + "(SQLITE_CONSTRAINT, extended code 2067) in: INSERT INTO t VALUES (?)")
    }

    /// The row is returned before the commit fails, and reading a single value must not hide that.
    @Test func `a scalar query whose transaction cannot be committed fails`() throws {
        try connection.execute(
            """
            PRAGMA foreign_keys = ON; CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE c (id INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED);
            """)
        #expect(throws: MoultError.self) { try connection.scalar("INSERT INTO c VALUES (7) RETURNING id") }
        #expect(try connection.scalar("SELECT count(*) FROM c") == .integer(0))
    }

    @Test func `reading an integer fails if the value is missing or not an integer`() throws {
        #expect(throws: MoultError.self) { _ = try connection.int("SELECT 'a'") }
        #expect(throws: MoultError.self) { _ = try connection.int("SELECT 1 WHERE 0") }
        #expect(try connection.scalar("SELECT 1 WHERE 0") == nil)
    }

    @Test func `a primary result code matches its extended codes`() {
        func isBusy(_ code: ResultCode) -> Bool { if case .busy = code { true } else { false } }
        #expect(isBusy(.busy))
        #expect(isBusy(.busySnapshot))
        #expect(!isBusy(.locked))
        func isSnapshot(_ code: ResultCode) -> Bool { if case .busySnapshot = code { true } else { false } }
        #expect(!isSnapshot(.busy))
    }
}
