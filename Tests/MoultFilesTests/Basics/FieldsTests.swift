import MoultBasics
import Testing

/// Reading the members of JSON objects: an error has the exact position and the type of the wrong value.
@Suite struct FieldsTests {
    private enum Colour: String, CaseIterable { case red, green }

    private func fields(_ text: String) throws -> Fields {
        try Fields(JSON(parsing: text, source: "t")) { place, why, now in
            MoultError(.system, what: place, why: why, now: now)
        }
    }

    /// Returns the position and reason of the error, and its advice if any.
    private func refusal(_ text: String, _ read: (Fields) throws -> Void) throws -> String? {
        let fields = try fields(text)
        let error = #expect(throws: MoultError.self) { try read(fields) }
        return error.map { "\($0.what) \($0.why ?? "")\($0.now.map { " (\($0))" } ?? "")" }
    }

    @Test func `values are read by name and type`() throws {
        let fields = try fields(
            #"{"s": "x", "b": false, "n": -7, "c": 0, "l": ["a", "b"], "t": {"k": "v"}, "o": {"in": 1}, "w": "green"}"#)
        #expect(try fields.string("s") == "x")
        #expect(try fields.optionalBool("b") == false)
        #expect(try fields.integer("n") == -7)
        #expect(try fields.count("c") == 0)
        #expect(try fields.optionalStrings("l") == ["a", "b"])
        #expect(try fields.optionalTexts("t") == ["k": "v"])
        #expect(try fields.object("o").integer("in") == 1)
        #expect(try fields.word("w", Colour.self) == .green)
    }

    @Test func `a missing optional member is nil or an empty list`() throws {
        let fields = try fields("{}")
        #expect(try fields.optionalString("x") == nil)
        #expect(try fields.optionalBool("x") == nil)
        #expect(try fields.optionalInteger("x") == nil)
        #expect(try fields.optionalCount("x") == nil)
        #expect(try fields.optionalNumber("x", in: 1...2) == nil)
        #expect(try fields.optionalStrings("x") == nil)
        #expect(try fields.optionalTexts("x") == nil)
        #expect(try fields.optionalObject("x") == nil)
        #expect(try fields.word("x", Colour.self) == nil)
        #expect(try fields.objects("x").isEmpty && fields.named("x").isEmpty)
    }

    @Test func `a missing required member is refused`() throws {
        let readers: [(Fields) throws -> Void] = [
            { _ = try $0.string("x") }, { _ = try $0.integer("x") }, { _ = try $0.count("x") },
            { _ = try $0.object("x") },
        ]
        for read in readers { #expect(try refusal(#"{"y": 1}"#, read) == "x is missing") }
    }

    @Test func `null does not count as a missing member`() throws {
        #expect(try refusal(#"{"x": null}"#) { _ = try $0.optionalString("x") } == "x must be a string, but is null")
    }

    @Test(arguments: [
        ("1.5", "a decimal number"), ("\"7\"", "a string"), ("true", "true"), ("[]", "a list"), ("{}", "an object"),
    ])
    func `a value of another type is refused with its type`(_ value: String, _ kind: String) throws {
        #expect(
            try refusal("{\"x\": \(value)}") { _ = try $0.integer("x") } == "x must be a whole number, but is \(kind)")
    }

    @Test func `counts and numbers must be in their range`() throws {
        let limit = 9_007_199_254_740_992
        #expect(try fields("{\"x\": \(limit - 1)}").count("x") == limit - 1)
        #expect(
            try refusal("{\"x\": \(limit)}") { _ = try $0.count("x") } == "x must be less than 2^53, but is \(limit)")
        #expect(try refusal(#"{"x": -1}"#) { _ = try $0.count("x") } == "x must not be negative, but is -1")
        for number in [1, 100] { #expect(try fields("{\"x\": \(number)}").optionalNumber("x", in: 1...100) == number) }
        for number in [0, 101] {
            #expect(
                try refusal("{\"x\": \(number)}") { _ = try $0.optionalNumber("x", in: 1...100) }
                    == "x must be from 1 to 100, but is \(number)")
        }
    }

    @Test func `an error in a nested value has the path from the root`() throws {
        let text = #"{"a": {"list": [{"n": 1}, {"n": "x"}], "words": ["ok", 2], "texts": {"k": 3}, "by": {"name": 4}}}"#
        #expect(
            try refusal(text) { _ = try $0.object("a").objects("list").map { try $0.integer("n") } }
                == "a.list[1].n must be a whole number, but is a string")
        #expect(
            try refusal(text) { _ = try $0.object("a").optionalStrings("words") }
                == "a.words[1] must be a string, but is a whole number")
        #expect(
            try refusal(text) { _ = try $0.object("a").optionalTexts("texts") }
                == "a.texts.k must be a string, but is a whole number")
        #expect(
            try refusal(text) { _ = try $0.object("a").named("by") }
                == "a.by.name must be an object, but is a whole number")
    }

    @Test(arguments: ["[]", "1", "\"x\"", "null"]) func `a document that is not an object is refused`(_ text: String) {
        let error = #expect(throws: MoultError.self) { try fields(text) }
        #expect(error?.what == "the document")
        #expect(error?.why?.hasPrefix("must be an object, but is ") == true)
    }

    @Test func `the members of an object are returned in order, with their paths`() throws {
        let named = try fields(#"{"a": {"z": {}, "b": {}}}"#).named("a")
        #expect(named.map(\.name) == ["z", "b"])
        #expect(named.map(\.fields.place) == ["a.z", "a.b"])
    }

    /// Swift treats the two spellings as the same key, so one of the values would be lost.
    @Test func `two names that differ only in their Unicode form are refused`() throws {
        let refusal = try refusal("{\"t\": {\"\u{E9}\": \"1\", \"e\u{301}\": \"2\"}}") { _ = try $0.optionalTexts("t") }
        #expect(refusal?.hasPrefix("t has two members whose names differ only in their Unicode form") == true)
    }

    @Test func `an unknown word is refused with all words, and the nearest one is suggested`() throws {
        #expect(
            try refusal(#"{"x": "gren"}"#) { _ = try $0.word("x", Colour.self) }
                == #"x must be one of "red", "green", but is "gren" (Did you mean "green"?)"#)
    }

    @Test func `members that were never read are refused with the nearest known name, or with all of them`() throws {
        func read(_ fields: Fields) throws {
            _ = try fields.optionalString("path")
            _ = try fields.optionalString("kind")
            try fields.refuseUnknown()
        }
        try read(fields(#"{"path": "x", "kind": "y"}"#))
        #expect(try refusal(#"{"path": "x", "kid": 1}"#, read) == #"kid is not a known field (Did you mean "kind"?)"#)
        #expect(
            try refusal(#"{"something": 1}"#, read) == "something is not a known field (Known fields: kind, path.)")
        // The names that one object has read do not count for another.
        #expect(
            try refusal(#"{"path": "x", "in": {"path": "y"}}"#) { fields in
                _ = try fields.optionalString("path")
                try fields.object("in").refuseUnknown()
            }?.hasPrefix("in.path is not a known field") == true)
    }
}
