import StepKit
import Testing

@Suite struct ExpectationTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let text: String
        let met: [String]
        let unmet: [String]
        init(_ text: String, by met: [String], not unmet: [String]) {
            (self.text, self.met, self.unmet) = (text, met, unmet)
        }
        var testDescription: String { text }
    }

    @Test(arguments: [
        Case(">= 7000", by: ["7000", "7001", "7000.5", "1e5"], not: ["6999", "", "many", "-7000"]),
        Case(">=7000", by: ["7000"], not: ["6999"]),
        Case("<= 0.5", by: ["0.5", "0", "-1"], not: ["0.51", "half"]),
        Case("> -2", by: ["-1", "0"], not: ["-2", "-3"]),
        Case("<   1e3", by: ["999"], not: ["1000"]),
        Case("= 5", by: ["5", "5.0", "05"], not: ["6", "five", ""]),
        Case("=5", by: ["5"], not: ["50"]),
        Case("!= 0", by: ["1", "none"], not: ["0", "0.0"]),
        Case("= ok", by: ["ok"], not: ["OK", " ok", "= ok"]),
        Case("!= ok", by: ["", "5"], not: ["ok"]),
        Case("= = 5", by: ["= 5"], not: ["5"]),
        Case("= a  b ", by: ["a  b "], not: ["a  b"]),
        // Without an operator, the expected value is the whole text.
        Case("ok", by: ["ok"], not: ["ok "]),
        Case("2.1.0", by: ["2.1.0"], not: ["2.1", "2.10"]),
        Case("12", by: ["12", "12.0"], not: ["13"]),
        Case("", by: [""], not: ["0", " "]),
        Case(" x", by: [" x"], not: ["x"]),
        // Integers are compared exactly, although both numbers are 2^53 as a Double.
        Case("= 9007199254740993", by: ["9007199254740993"], not: ["9007199254740992"]),
        Case("> 9007199254740992", by: ["9007199254740993"], not: ["9007199254740992"]),
        // Words such as `nan`, which Swift can parse as numbers, are compared as text.
        Case("= nan", by: ["nan"], not: ["NaN", "0"]),
        Case("Infinity", by: ["Infinity"], not: ["inf", "infinity"]),
        Case("= 0x10", by: ["0x10"], not: ["16"]),
    ])
    func `only the expected values meet an expectation`(_ test: Case) throws {
        let expectation = try #require(Expectation(test.text))
        for answer in test.met { #expect(expectation.isMet(by: answer), "\(answer)") }
        for answer in test.unmet { #expect(!expectation.isMet(by: answer), "\(answer)") }
        #expect(expectation.description == test.text)
    }

    @Test(arguments: [
        "=", "= ", ">=", "!=", ">= many", "< ", "> nan", "<= inf", ">= 0x10", "> 1 2", "== 5", "=> 5", "=< 5", "<> 5",
        ">> 5", "!== 5",
    ])
    func `an invalid expectation is refused`(_ text: String) { #expect(Expectation(text) == nil) }
}

@Suite struct AllowanceTests {
    @Test(arguments: [
        ("20%", 100, 20), ("20%", 99, 19), ("0%", 1_000_000, 0), ("0.5%", 1000, 5), ("100%", 7, 7), ("250%", 10, 25),
        // Each of these limits would be one row less if 0.57 were the nearest binary fraction.
        ("0.57%", 10_000, 57), ("0.0057%", 1_000_000, 57), ("1.15%", 10_000, 115),
        ("100", 5, 100), ("0", 5, 0), ("007", 5, 7),
        ("999999999.9999%", 100, 999_999_999), ("999999999999999", 5, 999_999_999_999_999),
    ])
    func `an allowance includes its limit, but nothing above it`(_ text: String, of total: Int, _ most: Int) throws {
        let allowance = try #require(Allowance(text))
        #expect(allowance.allows(most, of: total))
        #expect(!allowance.allows(most + 1, of: total))
    }

    @Test(arguments: [
        ("20%", "20%"), ("0.50%", "0.5%"), ("0.0001%", "0.0001%"), ("10.05%", "10.05%"), ("1", "1 row"),
        ("100", "100 rows"), ("0", "0 rows"),
    ])
    func `an allowance is described in words`(_ text: String, _ shown: String) {
        #expect(Allowance(text)?.description == shown)
    }

    @Test(arguments: [
        "", "%", ".5%", "5.%", "-1%", "-1", "+5", "1e2%", "inf%", "nan%", "0x10", "20 %", " 20%", "20%%", "5.5",
        "0.00001%",
        "1.2.3%", "many", "100 rows", "9999999999%", "9999999999999999",
    ])
    func `an invalid allowance is refused`(_ text: String) { #expect(Allowance(text) == nil) }
}
