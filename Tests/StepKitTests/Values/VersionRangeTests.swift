import StepKit
import Testing

@Suite struct VersionRangeTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let range: String
        let has: [String]
        let hasNot: [String]
        init(_ range: String, has: [String], not hasNot: [String]) {
            (self.range, self.has, self.hasNot) = (range, has, hasNot)
        }
        var testDescription: String { range }
    }

    @Test(arguments: [
        Case(">=1.4 <3", has: ["1.4.0", "1.4.1", "2.99.0", "2.0.0+5"], not: ["1.3.9", "3.0.0", "3.0.1"]),
        Case("2.1.3", has: ["2.1.3", "2.1.3+b"], not: ["2.1.2", "2.1.4"]),
        Case("=2.1.3", has: ["2.1.3"], not: ["2.1.2", "2.1.4"]),
        Case("2.1.3+b", has: ["2.1.3", "2.1.3+c"], not: ["2.1.4"]),
        Case("*", has: ["0.0.0", "999.0.0"], not: ["1.0.0-rc.1"]),
        // A partial version contains all versions that start with it.
        Case("2", has: ["2.0.0", "2.9.9"], not: ["1.9.9", "3.0.0"]),
        Case("=2.1", has: ["2.1.0", "2.1.9"], not: ["2.0.9", "2.2.0"]),
        Case("<=2", has: ["2.9.9", "0.0.0"], not: ["3.0.0"]),
        Case(">2", has: ["3.0.0"], not: ["2.9.9", "2.0.0"]),
        Case(">2.1", has: ["2.2.0"], not: ["2.1.9"]),
        Case(">=2", has: ["2.0.0"], not: ["1.9.9"]),
        Case("<2", has: ["1.9.9"], not: ["2.0.0"]),
        Case(">2.1.3", has: ["2.1.4"], not: ["2.1.3", "2.1.4-rc.1"]),
        Case("<=2.1.3", has: ["2.1.3", "2.1.3+b"], not: ["2.1.4"]),
        // Caret: the first number that is not 0 must not change.
        Case("^2.1", has: ["2.1.0", "2.9.0"], not: ["2.0.9", "3.0.0"]),
        Case("^2", has: ["2.0.0", "2.9.0"], not: ["1.9.9", "3.0.0"]),
        Case("^1.2.3", has: ["1.2.3", "1.99.0"], not: ["1.2.2", "2.0.0"]),
        Case("^0.2.3", has: ["0.2.3", "0.2.9"], not: ["0.2.2", "0.3.0"]),
        Case("^0.0.3", has: ["0.0.3"], not: ["0.0.2", "0.0.4"]),
        Case("^0.0.0", has: ["0.0.0"], not: ["0.0.1"]),
        Case("^0.0", has: ["0.0.0", "0.0.9"], not: ["0.1.0"]),
        Case("^0.2", has: ["0.2.0", "0.2.9"], not: ["0.1.9", "0.3.0"]),
        Case("^0", has: ["0.0.0", "0.9.9"], not: ["1.0.0"]),
        // Tilde: the patch number may change, and the minor number as well if the range has only a major number.
        Case("~2.1.3", has: ["2.1.3", "2.1.9"], not: ["2.1.2", "2.2.0"]),
        Case("~2.1", has: ["2.1.0", "2.1.9"], not: ["2.0.9", "2.2.0"]),
        Case("~2", has: ["2.0.0", "2.9.9"], not: ["3.0.0"]),
        Case("~0.0.3", has: ["0.0.3", "0.0.9"], not: ["0.1.0"]),
        // Alternatives
        Case("2.0.0 || >=2.2", has: ["2.0.0", "2.2.0"], not: ["2.0.1", "2.1.9"]),
        Case("1||3", has: ["1.5.0", "3.0.0"], not: ["2.0.0"]),
        Case("<1 || >=2 <3 || 5.0.0", has: ["0.1.0", "2.5.0", "5.0.0"], not: ["1.0.0", "3.0.0", "5.0.1"]),
        Case(">3 <2", has: [], not: ["1.0.0", "2.5.0", "4.0.0"]),
        // Spaces around operators
        Case("  >= 1.4   < 3  ", has: ["1.4.0"], not: ["3.0.0"]),
        Case("^ 2.1", has: ["2.1.0"], not: ["3.0.0"]),
        // A range contains a pre-release only if it names a pre-release of the same three numbers.
        Case(">=1.4 <3", has: [], not: ["1.4.0-rc.1", "2.0.0-rc.1", "3.0.0-rc.1"]),
        Case(">=2.0.0-rc.1", has: ["2.0.0-rc.1", "2.0.0-rc.2", "2.0.0", "2.1.0"], not: ["2.0.0-beta", "2.1.0-rc.1"]),
        Case(
            "^2.0.0-rc.1", has: ["2.0.0-rc.1", "2.0.0-rc.1.1", "2.0.0", "2.9.0"], not: ["2.0.0-a", "3.0.0-a", "3.0.0"]),
        Case("~2.1.3-b", has: ["2.1.3-b", "2.1.3-c", "2.1.3"], not: ["2.1.3-a", "2.1.4-b", "2.2.0"]),
        Case("^0.0.3-b", has: ["0.0.3-b", "0.0.3"], not: ["0.0.3-a", "0.0.4-a", "0.0.4"]),
        Case("2.0.0-rc.1", has: ["2.0.0-rc.1"], not: ["2.0.0-rc.1.0", "2.0.0-rc.2", "2.0.0"]),
        Case(">2.0.0-rc.1", has: ["2.0.0-rc.1.0", "2.0.0-rc.2", "2.0.0"], not: ["2.0.0-rc.1", "2.0.0-rc.0"]),
        Case("<=2.0.0-rc.1", has: ["2.0.0-rc.1", "2.0.0-a", "1.0.0"], not: ["2.0.0-rc.2", "2.0.0", "1.0.0-a"]),
        Case("<2.0.0-rc.1", has: ["2.0.0-rc.0", "1.9.9"], not: ["2.0.0-rc.1", "2.0.0"]),
        // The largest numbers have a next version.
        Case("^999999999999999999", has: ["999999999999999999.5.0"], not: ["1.0.0"]),
        Case("~1.999999999999999999", has: ["1.999999999999999999.0"], not: ["1.0.0"]),
        Case("<=1.0.999999999999999999", has: ["1.0.999999999999999999"], not: ["1.1.0"]),
    ])
    func `a range contains exactly its versions`(_ test: Case) throws {
        let range = try #require(VersionRange(test.range))
        for text in test.has { #expect(range.contains(try #require(Version(text))), "\(text)") }
        for text in test.hasNot { #expect(!range.contains(try #require(Version(text))), "\(text)") }
        #expect(range.description == test.range)
    }

    @Test(arguments: [
        "", " ", "||", "1 ||", "|| 1", "1 | 2", ">=", ">= ", "1 >", ">=1 <", "=>1", "==1", ">>1", "><1", "^^1", "~>1",
        "!1", ">=1.4<3", ">=1,<3", "> =1", "> >1", "1.x", "1.*", "x", ">=*", "01", "1.02", "1.2.3.4", "1.", ".1",
        "1..2",
        "1-rc", "1.2-rc.1", "1.2.3-", "v1", "-1", "1 - 2", ">=1\t<2", "99999999999999999999", "٢",
    ])
    func `an invalid range is refused`(_ text: String) { #expect(VersionRange(text) == nil) }
}
