import MoultBasics
import MoultSQLite
import Testing

/// Names are the same for moult exactly if they are the same for SQLite.
@Suite struct SQLNameTests {
    static let names = [
        "note", "NOTE", "Note", "no te", "", "\u{E9}", "e\u{301}", "\u{C9}", "stra\u{DF}e", "STRASSE", "k", "\u{212A}",
        "[", "{",
        "@", "`", "\u{1F36E}", "i", "I", "\u{131}", "\u{130}", "s", "\u{17F}",
    ]

    @Test(arguments: names) func `two names are equal exactly if SQLite treats them as the same table`(_ name: String)
        throws
    {
        let connection = try Connection.inMemory()
        try connection.execute("CREATE TABLE \(quoteIdentifier(name))(x)")
        for other in Self.names {
            let isSame = Result { try connection.execute("SELECT x FROM \(quoteIdentifier(other))") }.isSuccess
            #expect((SQLName(name) == SQLName(other)) == isSame, "\(name) and \(other)")
        }
    }

    @Test func `names are ordered as by SQLite without regard to case`() throws {
        let connection = try Connection.inMemory()
        try connection.execute("CREATE TABLE t(n TEXT COLLATE NOCASE)")
        for name in Self.names { try connection.execute("INSERT INTO t VALUES(\(quoteLiteral(.text(name))))") }
        let ordered = try connection.query("SELECT n FROM t ORDER BY n").map { row in
            guard case .text(let text) = row[0] else { return SQLName("") }
            return SQLName(text)
        }
        #expect(Self.names.map { SQLName($0) }.sorted() == ordered)
    }

    @Test func `equal names are one element of a set, and keep their spelling`() {
        let set: Set<SQLName> = ["Note", "NOTE", "\u{E9}", "e\u{301}"]
        #expect(set.count == 3)
        #expect(SQLName("NoTe").text == "NoTe" && "\(SQLName("NoTe"))" == "NoTe")
    }

    @Test func `beginnings and ends are compared as names`() {
        let name = SQLName("SQLite_Stat1")
        #expect(name.hasPrefix("sqlite_") && name.hasSuffix("STAT1") && name.hasPrefix("") && name.hasSuffix(""))
        #expect(!SQLName("st").hasPrefix("stat") && !SQLName("at").hasSuffix("stat"))
        // The accent is a separate character for SQLite.
        #expect(SQLName("e\u{301}").hasPrefix("e") && !SQLName("\u{E9}").hasPrefix("e"))
    }

    /// SQLite itself refuses to create a table with such a name.
    @Test(arguments: ["sqlite_x", "SQLITE_X", "sqlite", "sqlitex", "x_sqlite_", "\u{17F}qlite_x"])
    func `a name is internal exactly if SQLite reserves it`(_ name: String) throws {
        let connection = try Connection.inMemory()
        let isCreated = Result { try connection.execute("CREATE TABLE \(name)(x)") }.isSuccess
        #expect(SQLName(name).isInternal == !isCreated)
    }
}

extension Result {
    fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}
