import MoultLibc
import MoultSQLite
import Testing

@Suite struct QuotingTests {
    @Test(
        arguments: [
            .null, .integer(0), .integer(.max), .integer(.min), .real(0.1), .real(1e300), .real(-.leastNormalMagnitude),
            .real(3),
            .real(.infinity), .real(-.infinity), .text(""), .text("it's \"x\" \u{1F36E}"), .text("a\u{0}b"), .blob([]),
            .blob([0, 127, 255]),
        ] as [Value])
    func `a literal is read back as the value`(_ value: Value) throws {
        let connection = try Connection.inMemory()
        #expect(try connection.scalar("SELECT \(quoteLiteral(value))") == value)
        #expect("\(value)" == quoteLiteral(value))
    }

    @Test func `the literal of NaN is NULL`() {
        #expect(quoteLiteral(.real(.nan)) == "NULL")
    }

    @Test(arguments: ["desc", "a b", "a\"b", "[x]", "'", "ü", ""])
    func `an identifier is read back as the name`(_ name: String) throws {
        let connection = try Connection.inMemory()
        try connection.withStatement("SELECT 1 AS \(quoteIdentifier(name))") { #expect($0.columnName(0) == name) }
    }

    /// Swift treats a quote and a mark before or after it as one character, which is not a quote; SQLite reads bytes.
    @Test func `quotes are doubled next to every Unicode scalar`() throws {
        let connection = try Connection.inMemory()
        for number in UInt32(1)...0x10FFFF {
            // A scalar that does not join a quote is like a letter.
            guard let scalar = Unicode.Scalar(number), number < 0x3000 || number > 0xE0000 && number < 0xE0200,
                "\(scalar)\"".count == 1 || "\"\(scalar)".count == 1
            else { continue }
            for quote in ["\"", "'"] {
                for text in ["\(scalar)\(quote)x", "x\(quote)\(scalar)", "\(quote)\(scalar)\(quote)"] {
                    let value = Value.text(text)
                    let read = try connection.query("SELECT \(quoteLiteral(value)) AS \(quoteIdentifier(text))")
                    #expect(read == [[value]])
                    try connection.withStatement("SELECT 1 AS \(quoteIdentifier(text))") {
                        #expect($0.columnName(0).utf8.elementsEqual(text.utf8))
                    }
                }
            }
        }
    }

    @Test func `a text with a second statement runs none`() throws {
        let connection = try Connection.inMemory()
        #expect(throws: (any Error).self) { try connection.run("CREATE TABLE a(x); CREATE TABLE b(x)") }
        #expect(try connection.int("SELECT count(*) FROM sqlite_schema") == 0)
        try connection.run("CREATE TABLE a(x); -- nothing else")
        #expect(try connection.int("SELECT count(*) FROM sqlite_schema") == 1)
    }
}
