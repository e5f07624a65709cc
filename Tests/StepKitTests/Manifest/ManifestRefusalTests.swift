import MoultBasics
import MoultLibc
import StepKit
import Testing

/// Returns the error of the parser for a document; nil if the document is accepted.
func refusal(_ document: JSON, as form: Manifest.Form) -> String? {
    refusal(Array(document.line.utf8), as: form)
}

func refusal(_ bytes: [UInt8], as form: Manifest.Form) -> String? {
    do {
        _ = try Manifest(parsing: bytes, as: form, source: "m.json")
        return nil
    } catch { return "\(error)" }
}

@Suite struct ManifestRefusalTests {
    @Test func `the sample manifests are valid`() throws {
        #expect(try refusal(SampleDocuments.draft(), as: .draft) == nil)
        #expect(try refusal(SampleDocuments.sealed(), as: .sealed) == nil)
    }

    @Test(arguments: WrongManifest.all)
    func `an error contains the place, the problem and the advice`(_ wrong: WrongManifest) throws {
        // An error without specific advice has this general advice.
        let step = wrong.form == .draft ? Self.draftStep : Self.sealedStep
        let said = try #require(try refusal(wrong.document(), as: wrong.form))
        #expect(["m.json: \(wrong.says)", "m.json: \(wrong.says). \(step)"].contains(said), "\(said)")
    }

    @Test func `there are many cases, and MOULT_TEXTS=write writes their messages`() throws {
        #expect(WrongManifest.all.count > 100)
        guard let wish = getenv("MOULT_TEXTS"), String(cString: wish) == "write" else { return }
        try WrongManifest.write { wrong in
            let said = try #require(try refusal(wrong.document(), as: wrong.form)).dropFirst("m.json: ".count)
            for step in [". \(Self.draftStep)", ". \(Self.sealedStep)"] where said.hasSuffix(step) {
                return String(said.dropLast(step.count))
            }
            return String(said)
        }
    }

    private static let draftStep = "Correct the draft. To see its fields: moult help draft"
    private static let sealedStep = "Copy or download the manifest again, or pack the release again."

    @Test(arguments: WrongManifest.all)
    func `every refusal has advice`(_ wrong: WrongManifest) throws {
        let bytes = Array(try wrong.document().line.utf8)
        let error = #expect(throws: MoultError.self) {
            _ = try Manifest(parsing: bytes, as: wrong.form, source: "m.json")
        }
        #expect(error?.now != nil)
    }

    @Test(
        arguments: [
            ("", "line 1, column 1: expected a value, found the end of the text"),
            (
                "{\"manifest\": 1, \"manifest\": 1}",
                "line 1, column 17: the member \"manifest\" appears twice"
            ),
            (
                "{\"databases\": {\n  \"food\": {},\n  \"food\": {}\n}}",
                "line 3, column 3: the member \"food\" appears twice"
            ),
            (
                "{\"manifest\": 1,\n \"sequence\": 18446744073709551616}",
                "line 2, column 34: the number 18446744073709551616 is too large"
            ),
            ("{\"manifest\": 1e999}", "line 1, column 19: the number 1e999 is too large"),
            (
                "{\"product\": \"a\u{1}b\"}",
                "line 1, column 15: a control character is inside a string; escape it"
            ),
            (
                "{\"x\": " + String(repeating: "[", count: 100_000),
                "line 1, column 70: nested deeper than 64 levels"
            ),
            ("{} {}", "line 1, column 4: unexpected text after the end of the JSON value"),
        ], [Manifest.Form.draft, .sealed])
    func `the error for invalid JSON names the place`(_ wrong: (text: String, why: String), _ form: Manifest.Form) {
        #expect(refusal(Array(wrong.text.utf8), as: form) == "m.json is not valid JSON: \(wrong.why)")
    }

    @Test func `only drafts may have comments and trailing commas`() {
        let comment = Array("{ // what\n}".utf8)
        let comma = Array("{\"manifest\": 1,}".utf8)
        #expect(
            refusal(comment, as: .sealed)
                == "m.json is not valid JSON: line 1, column 3: a comment is not allowed in JSON")
        #expect(
            refusal(comma, as: .sealed)
                == "m.json is not valid JSON: line 1, column 16: a comma before '}' is not allowed in JSON")
        let next = "Correct the draft. To see its fields: moult help draft"
        #expect(refusal(comment, as: .draft) == "m.json: manifest is missing. \(next)")
        #expect(refusal(comma, as: .draft) == "m.json: product is missing. \(next)")
    }

    @Test func `bytes that are not UTF-8 are refused`() {
        let latin1 = Array("{\"product\": \"caf".utf8) + [0xE9] + Array("\"}".utf8)
        #expect(
            refusal(latin1, as: .sealed)
                == "m.json is not valid JSON: line 1, column 14: the text that begins here is not valid UTF-8")
        // UTF-16 with a byte order mark, as Windows programs write it.
        #expect(
            refusal([0xFF, 0xFE, 0x7B, 0x00], as: .draft)
                == "m.json is not valid JSON: line 1, column 1: expected a value, found byte 255")
    }

    @Test func `the largest manifest is one mebibyte`() throws {
        let bytes = Array(try SampleDocuments.sealed().pretty.utf8)
        let spaces = [UInt8](repeating: 0x20, count: 1 << 20 - bytes.count)
        #expect(refusal(bytes + spaces, as: .sealed) == nil)
        #expect(
            refusal(bytes + spaces + [0x20], as: .sealed)
                == "the manifest m.json is too large: it has 1048577 bytes, and the limit is 1048576")
    }

    /// Sizes are added without overflow checks, so no manifest may cause an overflow.
    @Test func `the sum of the largest sizes does not overflow`() throws {
        let largest = 1 << 48
        #expect(
            try refusal(SampleDocuments.draft().edited([.set("/databases/food/size", .size(largest))]), as: .draft)
                == nil)
        let shortest = "{\"member\":\"1\",\"size\":\(largest)},"
        #expect(!largest.multipliedReportingOverflow(by: Manifest.largest / shortest.utf8.count).overflow)
    }
}
