import MoultBasics
import StepKit
import Testing

/// The schemas declare exactly the fields that the parsers read.
@Suite struct SchemaFieldsTests {
    /// The parser lists its fields in the error about an unknown field.
    @Test(arguments: [DocumentForm.draft, .settings])
    func `the parser reads the fields of the schema`(_ form: DocumentForm) throws {
        let schema = try form.schema()
        let sample = try form.sample()
        var places = 0
        for path in [""] + sample.paths where sample.at(path)?.members != nil {
            guard let declared = try schema.names(at: path) else { continue }
            let refusal = form.refusal(sample.edited([.set("\(path)/zzzzqqqq", 1)])) ?? ""
            let known = "zzzzqqqq is not a known field. Known fields: \(declared.sorted().joined(separator: ", "))."
            #expect(refusal.hasSuffix(known), "\(path): \(refusal)")
            places += 1
        }
        #expect(places > 1)
    }

    /// Sealing removes the fields that only drafts have, and adds only fields that a draft may have.
    @Test func `both forms of a manifest have the same fields`() throws {
        let draft = try DocumentForm.draft.schema()
        let sealed = try DocumentForm.sealed.schema()
        let sample = try SampleDocuments.sealed()
        for path in [""] + sample.paths where sample.at(path)?.members != nil {
            let wanted = try draft.names(at: path)?.subtracting(["$schema", "source", "build"])
            #expect(try sealed.names(at: path) == wanted, "\(path)")
        }
    }

    @Test func `both forms of a manifest describe a field in the same way`() throws {
        let draft = try Dictionary(grouping: DocumentForm.draft.schema().fields(), by: \.place)
        for field in try DocumentForm.sealed.schema().fields() {
            // In a draft, a migration may also be a path.
            let place = field.place.replacing("/migrations/items/", with: "/migrations/items/anyOf/1/")
            let said = try #require(field.schema["description"]?.string)
            let saidOfDraft = try #require(draft[place]?.first?.schema["description"]?.string, "\(place)")
            #expect(saidOfDraft.hasPrefix(said), "\(place)")
        }
    }

    @Test(arguments: DocumentForm.allCases)
    func `every field of a schema has a description`(_ form: DocumentForm) throws {
        let schema = try form.schema()
        let validator = SchemaValidator(schema)
        #expect(schema.fields().count >= 10)
        for field in schema.fields() {
            let said = field.schema["description"]?.string ?? ""
            #expect(said.hasSuffix(".") && said.count > 15, "\(field.place)")
            for example in (field.schema["examples"]?.array ?? []) + [field.schema["default"]].compactMap(\.self) {
                #expect(try validator.accepts(example, field.schema), "\(field.place): \(example.line)")
            }
        }
    }

    /// Other tests compare with the samples, so the samples must have every field, and no default values.
    @Test(arguments: DocumentForm.allCases)
    func `the samples contain every field`(_ form: DocumentForm) throws {
        let sample = try form.sample()
        let used = Set(sample.paths.compactMap { $0.split(separator: "/").last.map { String($0) } })
        for field in try form.schema().fields() {
            #expect(used.contains(field.name), "\(field.place)")
            if let value = field.schema["default"] {
                let places = sample.paths.filter { $0.hasSuffix("/\(field.name)") }
                #expect(places.contains { sample.at($0) != value }, "\(field.place)")
            }
        }
    }
}
