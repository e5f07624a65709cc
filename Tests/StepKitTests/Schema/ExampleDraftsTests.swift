import MoultBasics
import MoultFiles
import StepKit
import Testing

/// The parser and the schema accept the example drafts, which users will copy.
@Suite struct ExampleDraftsTests {
    @Test func `the parser and the schema accept the example drafts`() throws {
        let validator = SchemaValidator(try DocumentForm.draft.schema())
        var count = 0
        for story in try Files.list(Schema.examples) {
            let directory = "\(Schema.examples)/\(story)"
            guard try Files.facts(directory)?.kind == .directory else { continue }
            for name in try Files.list(directory) where name.hasSuffix(".draft.json") {
                let path = "\(directory)/\(name)"
                let bytes = try #require(try Files.read(path, limit: Manifest.largest))
                #expect(refusal(bytes, as: .draft) == nil)
                let draft = try JSON(parsing: bytes, as: .draft, source: path)
                #expect(try validator.accepts(draft), "\(path)")
                // Editors can complete the fields of a draft that names its schema.
                let schema = try #require(draft["$schema"]?.string, "\(path)")
                #expect(try Files.facts("\(directory)/\(schema)") != nil, "\(path)")
                count += 1
            }
        }
        #expect(count > 0)
    }
}
