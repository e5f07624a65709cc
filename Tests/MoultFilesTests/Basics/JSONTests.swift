import Testing

@testable import MoultBasics

@Suite struct JSONTests {
    @Test func `infinity is written as a number beyond the range of a double`() {
        #expect(JSON.array([.number(.infinity), .number(-.infinity), .number(.nan)]).line == "[9e999,-9e999,null]")
    }

    @Test(arguments: [
        (#"{"a": [1, -2, 3.5, true, null, "x\n\u00e9\ud83d\ude00"]}"#, #"{"a":[1,-2,3.5,true,null,"x\né😀"]}"#),
        (#"  "only a text" "#, #""only a text""#), ("[]", "[]"), ("{}", "{}"),
        (#"{"b":1,"a":2}"#, #"{"b":1,"a":2}"#),
    ])
    func `parsed JSON is written on one line`(_ text: String, _ line: String) throws {
        #expect(try JSON(parsing: text, source: "t").line == line)
    }

    /// Control characters, which a terminal must not interpret, and invisible characters for direction, zero width and tags.
    @Test(
        arguments: [0x1B, 0x9B, 0xAD, 0x61C, 0x200B, 0x200F, 0x202E, 0x2060, 0x2069, 0xFEFF, 0x3164, 0xE0041]
            as [UInt32])
    func `invisible characters are escaped`(_ value: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(value))
        let text = "a\(Character(scalar))b"
        let line = JSON.string(text).line
        #expect(line.utf8.allSatisfy { (0x20..<0x7F).contains($0) }, "\(line)")
        #expect(try JSON(parsing: line, source: "t").string == text)
        #expect(visible(text) == "a\\u{\(String(value, radix: 16, uppercase: true))}b")
    }

    @Test(arguments: [
        ("", "line 1, column 1: expected a value, found the end of the text"),
        ("{\"a\": 1,}", "line 1, column 9: a comma before '}' is not allowed in JSON"),
        ("[1 2]", "line 1, column 4: expected ',' or ']'"),
        ("{\n \"a\": 1,\n \"a\": 2}", "line 3, column 2: the member \"a\" appears twice"),
        ("// x\n1", "line 1, column 1: a comment is not allowed in JSON"),
        ("01", "line 1, column 3: a number must not begin with 0"),
        ("99999999999999999999", "line 1, column 21: the number 99999999999999999999 is too large"),
        ("\"\\ud800\"", "line 1, column 8: unpaired surrogate"),
        ("1 1", "line 1, column 3: unexpected text after the end of the JSON value"),
        (String(repeating: "[", count: 100), "line 1, column 65: nested deeper than 64 levels"),
    ])
    func `the error for invalid JSON text contains the position`(_ text: String, _ why: String) {
        let error = #expect(throws: MoultError.self) { try JSON(parsing: text, source: "m.json") }
        #expect(error?.what == "m.json is not valid JSON")
        #expect(error?.why == why)
    }

    @Test func `invalid UTF-8 is refused`() {
        #expect(throws: MoultError.self) { try JSON(parsing: [0x22, 0xFF, 0x22], source: "t") }
    }

    @Test func `drafts may have comments and trailing commas`() throws {
        let text = "/* a */ { // b\n \"x\": [1, 2,], }"
        #expect(try JSON(parsing: text, as: .draft, source: "t").line == #"{"x":[1,2]}"#)
    }

    @Test func `pretty-printed JSON is parsed to the same value`() throws {
        let value: JSON = ["a": [1, ["b": "c\u{1}"]], "e": [], "f": ["g": true]]
        #expect(try JSON(parsing: value.pretty, source: "t") == value)
    }
}

@Suite struct TimestampTests {
    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2000-02-29T12:00:00Z", 951_825_600), ("2026-11-20T10:00:00Z", 1_795_168_800),
        ("1969-12-31T23:59:59Z", -1),
    ])
    func `a timestamp is read and written`(_ text: String, _ seconds: Int) {
        #expect(Timestamp(text)?.seconds == seconds)
        #expect(Timestamp(seconds: seconds).description == text)
    }

    @Test(arguments: [
        "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-20 10:00:00Z", "", "2026-11-20T10:00:00",
    ])
    func `an invalid timestamp is refused`(_ text: String) { #expect(Timestamp(text) == nil) }
}
