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
}
