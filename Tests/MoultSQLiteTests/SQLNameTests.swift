import MoultBasics
import MoultSQLite
import Testing

/// Names are compared as SQLite compares them; SQLite itself is the oracle.
@Suite struct SQLNameTests {
    /// Letters of both cases, the characters next to them, and letters that Unicode treats as equal to others: é in two
    /// encodings, the Kelvin sign, the long s, ß, and i with and without a dot.
    private static let names = [
        "a", "A", "z", "Z", "@", "[", "`", "{", "_", "é", "É", "e\u{301}", "k", "K", "\u{212A}", "s", "S", "\u{17F}",
        "ß",
        "SS", "i", "I", "ı", "İ", "a ", "aé", "Aé", "AÉ", "sqlite_a", "SQLite_a", "\u{17F}qlite_a", "",
    ]

    @Test func `two names are equal if SQLite treats them as the same column`() throws {
        let connection = try Connection.inMemory()
        for (index, one) in Self.names.enumerated() {
            for other in Self.names[index...] {
                var isTaken = false
                do {
                    try connection.execute("CREATE TABLE t (\(quoteIdentifier(one)), \(quoteIdentifier(other)))")
                    try connection.execute("DROP TABLE t")
                } catch let error as MoultError where error.sqlite?.message.contains("duplicate column") == true {
                    isTaken = true
                }
                #expect((SQLName(one) == SQLName(other)) == isTaken, "\(one), \(other)")
                #expect((Set([SQLName(one), SQLName(other)]).count == 1) == isTaken, "\(one), \(other)")
            }
        }
    }

    @Test func `names are sorted as by SQLite's NOCASE`() throws {
        let connection = try Connection.inMemory()
        for one in Self.names {
            for other in Self.names {
                let isBefore = try connection.query("SELECT ? < ? COLLATE NOCASE", [.text(one), .text(other)])
                #expect([[.integer(SQLName(one) < SQLName(other) ? 1 : 0)]] == isBefore, "\(one), \(other)")
            }
        }
    }

    @Test func `a name is internal if SQLite reserves it`() throws {
        let connection = try Connection.inMemory()
        for name in Self.names {
            var isReserved = false
            do { try connection.execute("CREATE TABLE \(quoteIdentifier(name)) (x)") } catch let error as MoultError
                where error.sqlite?.message.contains("reserved for internal use") == true
            {
                isReserved = true
            } catch let error as MoultError where error.sqlite?.message.contains("already exists") == true {}
            #expect(SQLName(name).isInternal == isReserved, "\(name)")
        }
    }

    @Test func `a suffix is compared like a name`() {
        #expect(SQLName("food-WAL").hasSuffix("-wal"))
        #expect(!SQLName("food-walé").hasSuffix("-wale\u{301}"))
        #expect(!SQLName("l").hasSuffix("-wal"))
    }
}
