import MoultBasics
import MoultFiles
import Testing

/// The reference pages have every field, and the parser and the schema accept every example on the pages.
@Suite struct ReferencePageTests {
    @Test(arguments: ReferencePage.all)
    func `the parser and the schema accept every example on the page`(_ page: ReferencePage) throws {
        let examples = try page.examples()
        #expect(examples.count(where: \.isWhole) >= 1)
        for example in examples {
            #expect(example.form.refusal(example.document) == nil, "\(example.text)")
            let accepted = try SchemaValidator(example.form.schema()).accepts(example.document)
            #expect(accepted, "\(example.text)")
        }
    }

    /// Without this test, every check would pass if the examples were not read at all.
    @Test func `an invalid example is detected`() throws {
        let page = ReferencePage(file: "settings.md", form: .settings)
        let text = "```json\n{ \"moult\": 1, \"product\": \"a.b\", \"keeep\": 2 }\n```\n"
        let wrong = try #require(page.examples(in: text).first)
        #expect(wrong.form.refusal(wrong.document)?.contains("keeep is not a known field") == true)
    }

    @Test(arguments: ReferencePage.all)
    func `every field is in a list and in an example of the page`(_ page: ReferencePage) throws {
        let text = try page.text()
        var used: Set<String> = []
        for example in try page.examples() { used.formUnion(example.document.fieldPaths) }
        for field in try page.form.schema().fields() {
            let isListed = ["`\(field.path)`", "**`\(field.path)`**"].contains { text.contains("\n- \($0) (") }
            #expect(isListed, "no list has \(field.path)")
            #expect(used.contains(field.path), "no example has \(field.path)")
        }
    }

    /// The reference tables and editors show the examples in the schemas.
    @Test(arguments: DocumentForm.allCases)
    func `the parser accepts every example in a schema`(_ form: DocumentForm) throws {
        let sample = try form.sample()
        let places = Dictionary(grouping: sample.paths) { sample.fieldPath(of: $0) }
        for field in try form.schema().fields() where !Self.boundToOthers.contains(field.path) {
            let place = try #require(places[field.path]?.first, "\(field.path)")
            for example in field.schema["examples"]?.array ?? [] {
                let refusal = form.refusal(sample.edited([.set(place, example)]))
                #expect(refusal == nil, "\(field.path): \(refusal ?? "")")
            }
        }
    }

    /// Fields whose value must equal another field of the sample.
    static let boundToOthers: Set = [
        "keys.trusted[].id", "keys.trusted[].key", "patches[].member", "databases.NAME.member",
        "databases.NAME.migrations[].member",
    ]
}

/// A page of `docs/` with the fields of a document.
struct ReferencePage: CustomTestStringConvertible {
    let file: String
    let form: DocumentForm

    static let all = [
        ReferencePage(file: "manifest.md", form: .draft), ReferencePage(file: "settings.md", form: .settings),
        ReferencePage(file: "feeds.md", form: .feed),
    ]

    var testDescription: String { file }

    struct Example {
        let text: String
        let form: DocumentForm
        let document: JSON
        let isWhole: Bool
    }

    func text() throws -> String {
        let path = "\(Schema.examples)/../docs/\(file)"
        return String(decoding: try #require(try Files.read(path, limit: 1 << 20)), as: UTF8.self)
    }

    func examples() throws -> [Example] { try examples(in: text()) }

    /// Returns the JSON blocks of a page. A block with only a part of a document replaces fields of the last complete
    /// document, reduced to its required fields.
    func examples(in text: String) throws -> [Example] {
        var base: JSON?
        var form = form
        var examples: [Example] = []
        var block: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line == "## The sealed manifest" { (form, base) = (.sealed, nil) }
            guard let lines = block else {
                if line == "```json" || line.hasPrefix("```json ") { block = [] }
                continue
            }
            guard line == "```" else {
                block = lines + [line]
                continue
            }
            block = nil
            let text = lines.joined(separator: "\n")
            let json = try JSON(parsing: Array(text.utf8), as: .draft, source: file)
            let isWhole = ["manifest", "moult", "feed"].contains { json[$0]?.integer == 1 }
            if isWhole { base = base ?? json }
            let document = isWhole ? json : try #require(base).extended(by: json)
            examples.append(Example(text: text, form: form, document: document, isWhole: isWhole))
        }
        return examples
    }
}

extension JSON {
    /// Returns this document with the fields of a part. Databases are added to the existing databases.
    fileprivate func extended(by part: JSON) -> JSON {
        (part.members ?? []).reduce(self) { document, member in
            let old = member.name == "databases" ? document["databases"] : nil
            return document.setting(member.name, to: old?.extended(by: member.value) ?? member.value)
        }
    }

    /// The fields of this document, written as on the pages: `databases.NAME.preserve[].table`.
    fileprivate var fieldPaths: Set<String> { Set(paths.map(fieldPath)) }

    /// Returns a path in this document, written as on the pages.
    fileprivate func fieldPath(of path: String) -> String {
        var (result, parent) = ("", "")
        for part in path.split(separator: "/") {
            if Int(part) != nil {
                result += "[]"
            } else {
                // Users choose the names of members only in these fields.
                let isNamed = result == parent && ["databases", "budget", "steps"].contains(parent)
                result += (result.isEmpty ? "" : ".") + (isNamed ? "NAME" : part)
            }
            parent = Int(part) != nil ? "" : String(part)
        }
        return result
    }
}

extension DeclaredField {
    /// The field, written as on the pages: `databases.NAME.preserve[].table`.
    fileprivate var path: String {
        place.replacing(/\/anyOf\/[0-9]+/, with: "").replacing("/items", with: "[]")
            .replacing("/additionalProperties", with: ".NAME").replacing("/properties/", with: ".").dropFirst()
            .description
    }
}
