import MoultBasics
import MoultFiles
import StepKit
import Testing

/// The drafts that people will copy from are what the parser takes and the schema describes.
@Suite struct ExampleDraftsTests {
    @Test func `both take them`() throws {
        let validator = SchemaValidator(try DocumentForm.draft.schema())
        var count = 0
        for story in try Files.list(Schema.examples) {
            let directory = "\(Schema.examples)/\(story)"
            guard try Files.facts(directory)?.kind == .directory else { continue }
            for name in try Files.list(directory) where name.hasSuffix(".draft.json") {
                let path = "\(directory)/\(name)"
                let bytes = try #require(try Files.read(path, limit: Manifest.largest))
                #expect(refusal(bytes, as: .draft) == nil)
                #expect(try validator.accepts(JSON(parsing: bytes, as: .draft, source: path)), "\(path)")
                count += 1
            }
        }
        #expect(count > 0)
    }
}
