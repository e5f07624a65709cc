import MoultBasics
import StepKit
import Testing

/// The schemas agree with the parsers: both accept or both refuse everything that a schema can express. The tests run
/// one after the other, because they compute for seconds, and other tests wait for the same threads.
@Suite(.serialized) struct SchemaAgreementTests {
    @Test(arguments: DocumentForm.allCases)
    func `parser and schema accept the sample`(_ form: DocumentForm) throws {
        #expect(try form.refusal(form.sample()) == nil)
        #expect(try SchemaValidator(form.schema()).accepts(form.sample()))
    }

    @Test(arguments: [DocumentForm.draft, .sealed])
    func `parser and schema refuse invalid documents`(_ form: DocumentForm) throws {
        let validator = SchemaValidator(try form.schema())
        for wrong in WrongManifest.all where (wrong.form == .draft) == (form == .draft) {
            // If the schema accepts the document, the document must have an error that a schema cannot express.
            #expect(try validator.accepts(wrong.document()) == (wrong.beyond != nil), "\(wrong.testDescription)")
            if let beyond = wrong.beyond { #expect(wrong.says.contains(beyond.rawValue)) }
        }
    }

    @Test func `every rule that the schemas cannot express is in the table`() {
        let shown = WrongManifest.all.compactMap(\.beyond)
        #expect(BeyondSchema.allCases.filter { !shown.contains($0) } == [])
    }

    @Test(arguments: DocumentForm.allCases)
    func `parser and schema agree on every mutated document`(_ form: DocumentForm) throws {
        let validator = SchemaValidator(try form.schema())
        let mutants = try form.mutants()
        #expect(mutants.count > 100)
        for mutant in mutants {
            let refusal = form.refusal(mutant.document)
            let isBeyond = BeyondSchema.allCases.contains { refusal?.contains($0.rawValue) == true }
            if try validator.accepts(mutant.document) {
                #expect(refusal == nil || isBeyond, "only the parser refuses: \(mutant.edit)")
            } else {
                #expect(refusal != nil, "only the schema refuses: \(mutant.edit)")
            }
        }
    }

    /// A schema without one of its fields must disagree with the parser. This shows that the tests above detect every
    /// missing field.
    @Test(arguments: DocumentForm.allCases)
    func `a schema without one of its fields disagrees with the parser`(_ form: DocumentForm) throws {
        let schema = try form.schema()
        let verdicts = try [form.sample()].map { ($0, "") } + form.mutants().map { ($0.document, $0.edit.path) }
        for field in schema.fields() {
            let validator = SchemaValidator(try schema.without(field))
            let disagrees = try verdicts.contains { document, path in
                guard path.isEmpty || path.hasSuffix("/\(field.name)") else { return false }
                let refusal = form.refusal(document)
                if BeyondSchema.allCases.contains(where: { refusal?.contains($0.rawValue) == true }) { return false }
                return try validator.accepts(document) != (refusal == nil)
            }
            #expect(disagrees, "\(field.place)")
        }
    }
}
